import type { PodSpec, Pod as WrittenPod } from '../../kinds/index.ts';
import type { YamlTree } from '../../lib/index.ts';
import { type PodUid, podUid } from '../../pods/index.ts';
import type { ManifestOrigin } from '../manifest-origin.ts';
import { TypeDumper } from './dump.ts';
import { toInternalPod } from './internal-pod.ts';

/**
 * Computes the UID of a static pod whose manifest sets none. It depends only on the manifest, the
 * node and the location, and equals the UID that a Go kubelet of v1.36 computes, so that a node can
 * switch between the two kubelets while its static pods run. Comments, key order and layout are
 * ignored.
 */
export class StaticUidGenerator {
  readonly #dumper = new TypeDumper();

  /**
   * Computes the UID of a pod, which must be the manifest with its defaults and without any other
   * changes.
   */
  uidOf(
    pod: WrittenPod & { readonly spec: PodSpec },
    manifest: YamlTree,
    { source, path, nodeName }: ManifestOrigin,
  ): PodUid {
    const place = source === 'file' ? `host:${nodeName}file:${path}` : `url:${path}`;
    return podUid(fnv1a128(Buffer.from(`${this.dump(pod, manifest)}${place}`)));
  }

  /** Dumps the part of the pod that is hashed. */
  dump(pod: WrittenPod & { readonly spec: PodSpec }, manifest: YamlTree): string {
    return this.#dumper.dump('Pod', toInternalPod(pod, manifest), manifest);
  }
}

const limbBits = 22;
const limbMask = 2 ** limbBits - 1;
const topMask = 2 ** 18 - 1;
/**
 * The FNV prime is 2^88 + 315, and 88 bits are four limbs, so multiplying by it is multiplying by
 * 315 plus a shift by four limbs.
 */
const factor = 315;
const offsetBasis = 0x6c62272e07bb014262b821756295c58dn;

/**
 * Returns the 128-bit FNV-1a hash as 32 hexadecimal digits. The number consists of six limbs, the
 * highest with 18 bits, so that no product exceeds 31 bits; this is a hundred times faster than
 * bigint.
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
