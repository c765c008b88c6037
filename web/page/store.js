/* What a room keeps across reloads: one record for each room, in IndexedDB. A browser that refuses has no memory. */

const opened = new Promise(resolve => {
  try {
    const request = indexedDB.open('cairn', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('rooms');
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null);
  } catch {
    resolve(null);
  }
});

async function ask(mode, f) {
  const db = await opened;
  if (!db) return undefined;
  return new Promise(resolve => {
    const request = f(db.transaction('rooms', mode).objectStore('rooms'));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(undefined);
  });
}

export const load = name => ask('readonly', store => store.get(name));
export const save = (name, record) => ask('readwrite', store => store.put(record, name));
export const forget = name => ask('readwrite', store => store.delete(name));
