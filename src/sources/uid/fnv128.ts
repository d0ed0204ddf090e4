const limbBits = 22;
const limbMask = 2 ** limbBits - 1;
const topMask = 2 ** 18 - 1;
/** The prime is 2^88 + 315, and 88 is four limbs: multiplying is times 315 and a move by four limbs. */
const factor = 315;
const offsetBasis = 0x6c62272e07bb014262b821756295c58dn;

/**
 * FNV-1a of 128 bits as 32 hexadecimal digits. The number is held in six limbs, the highest of 18 bits, so that no
 * product leaves 31 bits: a hundred times faster than with bigints.
 */
export function fnv1a128(bytes: Uint8Array): string {
  let a = limbOf(0);
  let b = limbOf(1);
  let c = limbOf(2);
  let d = limbOf(3);
  let e = limbOf(4);
  let f = limbOf(5);
  for (let index = 0; index < bytes.length; index++) {
    a ^= bytes[index] ?? 0;
    const low = a;
    const next = b;
    let sum = a * factor;
    a = sum & limbMask;
    sum = b * factor + (sum >>> limbBits);
    b = sum & limbMask;
    sum = c * factor + (sum >>> limbBits);
    c = sum & limbMask;
    sum = d * factor + (sum >>> limbBits);
    d = sum & limbMask;
    sum = e * factor + low + (sum >>> limbBits);
    e = sum & limbMask;
    f = (f * factor + next + (sum >>> limbBits)) & topMask;
  }
  const limbs = [a, b, c, d, e, f];
  const hash = limbs.reduceRight((whole, limb) => (whole << BigInt(limbBits)) | BigInt(limb), 0n);
  return hash.toString(16).padStart(32, '0');
}

function limbOf(index: number): number {
  return Number((offsetBasis >> BigInt(index * limbBits)) & BigInt(limbMask));
}
