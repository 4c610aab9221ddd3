/**
 * Where the device remembers things: four tables in IndexedDB. Every change is one transaction: rows are read, a
 * decision is made without waiting, and its writes are made, all or none, also against another tab.
 */

/** @type {Table[]} */
const TABLES = ["ledger", "outbox", "settings", "drafts"];
const LAST_USE = "crowdveil-last-use";

/** @type {OpenStore} */
export async function openStore(name = "crowdveil") {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => TABLES.forEach((table) => request.result.createObjectStore(table));
  const database = await finished(request);
  return {
    update: (decide) => change(database, decide),
    clear: async () => {
      await change(database, (_, transaction) => {
        TABLES.forEach((table) => transaction.objectStore(table).clear());
        return {};
      });
      lastUse.clear();
    },
  };
}

/** The day of the last use, outside the database: where it is there and the database is empty, the browser has evicted that. */
export const lastUse = {
  read: () => safely(() => localStorage.getItem(LAST_USE)),
  /** @param {string} day */
  write: (day) => safely(() => localStorage.setItem(LAST_USE, day)),
  clear: () => safely(() => localStorage.removeItem(LAST_USE)),
};

/** Where a browser offers no such storage, there is nothing to compare with. @type {Safely} */
function safely(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

/** @type {Change} */
async function change(database, decide) {
  // Strict: the draw is on the disk before it is shown, so a crash cannot lead to a second draw.
  const transaction = database.transaction(TABLES, "readwrite", { durability: "strict" });
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error ?? new DOMException("aborted", "AbortError"));
  });
  try {
    const { result, writes = [] } = decide(await rowsOf(transaction), transaction);
    for (const { table, key, value } of writes) {
      const rows = transaction.objectStore(table);
      // Never replaced: that would undo the whole change.
      if (table === "ledger") rows.add(value, key);
      else if (value === undefined) rows.delete(key);
      else rows.put(value, key);
    }
    await done;
    return /** @type {any} */ (result);
  } catch (error) {
    done.catch(() => undefined);
    try { transaction.abort(); } catch { /* it has ended by itself */ }
    throw error;
  }
}

/** @type {RowsOf} */
async function rowsOf(transaction) {
  const tables = await Promise.all(TABLES.map(async (table) => {
    const objects = transaction.objectStore(table);
    const [keys, values] = await Promise.all([finished(objects.getAllKeys()), finished(objects.getAll())]);
    return [table, new Map(keys.map((key, i) => [String(key), values[i]]))];
  }));
  return Object.fromEntries(tables);
}

/** @type {Finished} */
function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
