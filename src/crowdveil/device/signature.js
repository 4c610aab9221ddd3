/** Whether the broker signed something: Ed25519 over canonical JSON, by the browser's own cryptography. */
import { canonical } from "./canonical.js";

/** Null where this browser cannot tell: too old, or the page is not served securely. @type {Signed} */
export async function signed(value, signature, publicKey) {
  try {
    const key = await crypto.subtle.importKey("raw", bytes(publicKey), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, bytes(signature), canonical(value));
  } catch (error) {
    return !crypto.subtle || (error instanceof DOMException && error.name === "NotSupportedError") ? null : false;
  }
}

/** @param {unknown} hexadecimal */
const bytes = (hexadecimal) => Uint8Array.from(String(hexadecimal).match(/../g) ?? [], (pair) => parseInt(pair, 16));
