import { apiResources, type JsonObject } from '../../../src/api/index.ts';
import type { Clock, Random, Timer } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/stored-object.ts';
import { attachedName, attachmentName } from '../../../src/volumes/csi/csi-paths.ts';
import type { SimulatedApi } from '../../simulator/index.ts';
import { nodeName } from '../manifests.ts';
import { attachedKinds, drivers, stagedIdOf } from './pod-volumes.ts';

export interface AttachControllerDeps {
  readonly api: SimulatedApi;
  readonly clock: Clock;
  readonly random: Random;
  /** The directories in which the node still uses the volume. */
  readonly placesOf: (volumeId: string) => readonly string[];
  readonly broken: (rule: string, what: string) => void;
  readonly note: (what: string) => void;
}

const slowestMs = 3_000;

interface AttachedNodeStatus {
  readonly volumesInUse?: readonly string[];
  readonly volumesAttached?: readonly { readonly name: string }[];
}

/**
 * A fake attach-detach controller: attaches volumes for the pods of the node, and detaches volumes
 * that no pod requires and the node does not use.
 */
export class AttachController {
  readonly #deps: AttachControllerDeps;
  readonly #attached = new Set<string>();
  readonly #subscription: Disposable;
  #timer: Timer | undefined;

  constructor(deps: AttachControllerDeps) {
    this.#deps = deps;
    this.#subscription = deps.api.onChange(({ resource }) => {
      if (['pods', 'nodes'].includes(resource.plural)) this.#soon();
    });
  }

  get attached(): ReadonlySet<string> {
    return this.#attached;
  }

  close(): void {
    this.#subscription[Symbol.dispose]();
    this.#timer?.cancel();
  }

  #soon(): void {
    const { clock, random } = this.#deps;
    this.#timer ??= clock.timer(random.next() * slowestMs, () => {
      this.#timer = undefined;
      this.#reconcile();
    });
  }

  #reconcile(): void {
    const node = this.#deps.api.object({ resource: apiResources.nodes, name: nodeName });
    if (node === undefined) return;
    const expected = new Set(this.#deps.api.objects(apiResources.pods).flatMap(attachedTo));
    for (const id of expected) if (!this.#attached.has(id)) this.#attach(id);
    const { volumesInUse } = (node.status ?? {}) as AttachedNodeStatus;
    // Until the node has reported volumesInUse, every volume may be in use.
    const isFree = (id: string) => volumesInUse?.includes(attachedName(drivers.far, id)) === false;
    for (const id of [...this.#attached]) if (!expected.has(id) && isFree(id)) this.#detach(id);
    this.#tell(node);
  }

  #attach(id: string): void {
    this.#deps.note(`attached ${id}`);
    this.#attached.add(id);
    this.#deps.api.put(apiResources.volumeAttachments, {
      metadata: { name: attachmentName(id, drivers.far, nodeName) },
      spec: { attacher: drivers.far, nodeName, source: { persistentVolumeName: id } },
      status: { attached: true },
    });
  }

  #detach(id: string): void {
    this.#deps.note(`detached ${id}`);
    for (const place of this.#deps.placesOf(id))
      this.#deps.broken('no volume is detached that the node still has', `${id} at ${place}`);
    this.#attached.delete(id);
    const name = attachmentName(id, drivers.far, nodeName);
    this.#deps.api.delete({ resource: apiResources.volumeAttachments, name });
  }

  #tell(node: StoredObject): void {
    const { volumesAttached = [] } = (node.status ?? {}) as AttachedNodeStatus;
    const names = [...this.#attached].map((id) => attachedName(drivers.far, id)).toSorted();
    if (names.join() === volumesAttached.map(({ name }) => name).join()) return;
    this.#deps.api.change({ resource: apiResources.nodes, name: nodeName }, (now) => ({
      ...now,
      status: {
        ...now.status,
        volumesAttached: names.map((name) => ({ name, devicePath: '' })),
      } as JsonObject,
    }));
  }
}

/** The IDs of the pod's volumes that must be attached. */
function attachedTo({ metadata: { uid }, spec }: StoredObject): readonly string[] {
  const volumes = (spec?.['volumes'] ?? []) as readonly { readonly name: string }[];
  const own = attachedKinds.filter((kind) => volumes.some(({ name }) => name === kind));
  return own.flatMap((kind) => stagedIdOf(uid, kind) ?? []);
}
