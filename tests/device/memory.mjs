// The device's store in memory: the same promise as `store.js`, for Node, which has no IndexedDB.
const TABLES = ["ledger", "outbox", "settings", "drafts"];

export function memoryStore() {
  const rows = Object.fromEntries(TABLES.map((table) => [table, new Map()]));
  return {
    async update(decide) {
      const { result, writes = [] } = decide(structuredClone(rows));
      for (const { table, key } of writes) if (table === "ledger" && rows.ledger.has(key)) throw new Error("ConstraintError");
      for (const { table, key, value } of structuredClone(writes)) {
        if (value === undefined) rows[table].delete(key);
        else rows[table].set(key, value);
      }
      return result;
    },
    async clear() {
      TABLES.forEach((table) => rows[table].clear());
    },
  };
}
