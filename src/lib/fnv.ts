const prime = 0x01000193;

/** FNV-1a of 32 bits. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, prime);
  return hash >>> 0;
}
