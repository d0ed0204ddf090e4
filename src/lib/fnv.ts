const offset = 0x811c9dc5;
const prime = 0x01000193;

/** FNV-1a with 32 bits, the hash of the Go kubelet for specs and checkpoints. */
export function fnv1a32(text: string): number {
  let hash = offset;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, prime);
  return hash >>> 0;
}
