import type { PodSpec, Pod as WrittenPod } from '../../kinds/index.ts';
import type { YamlTree } from '../../lib/index.ts';
import { type PodUid, podUid } from '../../pods/index.ts';
import type { ManifestPlace } from '../manifest-place.ts';
import { asHeld } from './as-held.ts';
import { TypeDumper } from './dump.ts';
import { fnv1a128 } from './fnv128.ts';

/**
 * The UID of a pod whose manifest gives none: the same for the same manifest on the same node in the same place, and the
 * same as a Go kubelet of v1.36 gives it, so that a node can change from one to the other with its static pods running.
 * Comments, order of keys and layout do not count.
 */
export class StaticUidMaker {
  readonly #dumper = new TypeDumper();

  /** The pod must be the manifest with its defaults, and nothing else. */
  uidOf(
    pod: WrittenPod & { readonly spec: PodSpec },
    manifest: YamlTree,
    { source, path, nodeName }: ManifestPlace,
  ): PodUid {
    const place = source === 'file' ? `host:${nodeName}file:${path}` : `url:${path}`;
    return podUid(fnv1a128(Buffer.from(`${this.dump(pod, manifest)}${place}`)));
  }

  /** What is hashed of the pod itself. */
  dump(pod: WrittenPod & { readonly spec: PodSpec }, manifest: YamlTree): string {
    return this.#dumper.dump('Pod', asHeld(pod, manifest), manifest);
  }
}
