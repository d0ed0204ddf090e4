import { type ApiClient, apiResources, isApiCode } from '../api/index.ts';
import type { CSINode, CSINodeDriver, Node } from '../kinds/index.ts';
import {
  Backoff,
  type Clock,
  describeError,
  HintLatch,
  KubelingError,
  type Logger,
  type Random,
} from '../lib/index.ts';

/** The NodeGetInfo response of a CSI driver. */
export interface DriverOnNode {
  readonly driver: string;
  readonly nodeId: string;
  readonly topology: Readonly<Record<string, string>>;
  readonly maxVolumes: number | undefined;
}

export interface CsiNodeDeps {
  readonly api: Pick<ApiClient, 'get' | 'create' | 'update' | 'patch' | 'delete'>;
  readonly nodeName: string;
  /** The newest Node object that was received. */
  readonly node: () => Node | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Called when the CSINode was created, so that it no longer keeps the node NotReady. */
  readonly initialized?: (() => void) | undefined;
}

const idAnnotation = 'csi.volume.kubernetes.io/nodeid';
const migratedAnnotation = 'storage.alpha.kubernetes.io/migrated-plugins';
/** In-tree volume plugins that are migrated to CSI everywhere. */
const migrated = [
  'kubernetes.io/aws-ebs',
  'kubernetes.io/azure-disk',
  'kubernetes.io/azure-file',
  'kubernetes.io/cinder',
  'kubernetes.io/gce-pd',
  'kubernetes.io/portworx-volume',
  'kubernetes.io/vsphere-volume',
].join(',');
const retry = { baseMs: 500, maxMs: 60_000 };
const unknownNodeMs = 1_000;
const idleMs = 600_000;

/**
 * Publishes the CSI drivers of this node: in its CSINode, and in annotations and labels of its
 * Node. Failed changes are retried, so that driver registration does not wait for an unavailable
 * API server.
 */
export class CsiNodePublisher {
  readonly #deps: CsiNodeDeps;
  readonly #installed = new Map<string, DriverOnNode>();
  /** Rejection callbacks of drivers that registered before the Node's topology was known. */
  readonly #unpublished = new Map<string, (why: string) => void>();
  /**
   * Drivers removed in this process, which are deleted from CSINode; drivers of previous processes
   * stay there, because they may still register.
   */
  readonly #removed = new Set<string>();
  readonly #changes: HintLatch;
  /** Whether the CSINode exists: before that, the volume limits of the node are unknown. */
  #object: 'unknown' | 'exists' = 'unknown';

  constructor(deps: CsiNodeDeps) {
    this.#deps = deps;
    this.#changes = new HintLatch(deps.clock);
    // The CSINode is created even without drivers.
    this.#changes.raise();
  }

  /** Why the driver's topology conflicts with that of the node; undefined when it does not. */
  collision({ driver, topology }: DriverOnNode): string | undefined {
    const otherDrivers = [...this.#installed.values()].filter((other) => other.driver !== driver);
    const told = Object.assign({}, ...otherDrivers.map((other) => other.topology));
    return collisionIn({ ...told, ...this.#deps.node()?.metadata?.labels }, topology);
  }

  /** Publishes the driver in the background; `refused` is called if its topology conflicts. */
  installed(facts: DriverOnNode, refused: (why: string) => void): void {
    const before = this.#installed.get(facts.driver)?.topology;
    if (before === undefined || collisionIn(before, facts.topology) !== undefined)
      this.#unpublished.set(facts.driver, refused);
    this.#installed.set(facts.driver, facts);
    this.#removed.delete(facts.driver);
    this.#changes.raise();
  }

  removed(driver: string): void {
    this.#installed.delete(driver);
    this.#unpublished.delete(driver);
    this.#removed.add(driver);
    this.#changes.raise();
  }

  /** Why the node is not ready: its CSINode does not exist yet. */
  problem(): string | undefined {
    return this.#object === 'exists' ? undefined : 'CSINode is not yet initialized';
  }

  /** Requests publication after the Node was read or has changed. */
  nodeChanged(): void {
    if (this.#object === 'unknown') this.#changes.raise();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#deps;
    const backoff = new Backoff(retry, random);
    for (;;) {
      await this.#changes.wait(idleMs, signal);
      this.#changes.clear();
      const node = this.#deps.node();
      try {
        if (node?.metadata?.uid !== undefined) await this.#publish(node, signal);
        if (node?.metadata?.uid !== undefined) backoff.reset();
        else await this.#changes.wait(unknownNodeMs, signal);
        if (node?.metadata?.uid === undefined) this.#changes.raise();
      } catch (error) {
        signal.throwIfAborted();
        const waitMs = backoff.fail(clock.monotonicMs());
        logger.warn('Failed to publish CSI drivers of node, retrying', {
          because: describeError(error),
          waitMs,
        });
        await this.#retryAfter(waitMs, signal);
      }
    }
  }

  async #retryAfter(waitMs: number, signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(waitMs, signal);
    this.#changes.raise();
  }

  async #publish(node: Node, signal: AbortSignal): Promise<void> {
    if (this.#installed.size > 0 || this.#removed.size > 0) await this.#publishNode(signal);
    await this.#publishCsiNode(node, signal);
    if (this.#object === 'exists') return;
    this.#object = 'exists';
    this.#deps.initialized?.();
  }

  async #publishNode(signal: AbortSignal): Promise<void> {
    const { api, nodeName: name } = this.#deps;
    const ref = { resource: apiResources.nodes, name };
    const node = await api.get<Node>(ref, {}, signal);
    const { annotations = {}, labels = {}, uid, resourceVersion } = node.metadata ?? {};
    this.#rejectCollisions(labels);
    const published = [...this.#unpublished.keys()];
    const isPublished = () => {
      for (const driver of published) this.#unpublished.delete(driver);
    };
    const ids = this.#idsIn(annotations[idAnnotation]);
    const desiredIds = Object.keys(ids).length === 0 ? null : JSON.stringify(ids);
    const added = this.#labelsOfOthers(labels);
    const isSame = (annotations[idAnnotation] ?? null) === desiredIds;
    if (isSame && Object.keys(added).length === 0) return isPublished();
    const metadata = {
      uid,
      resourceVersion,
      ...(isSame ? {} : { annotations: { [idAnnotation]: desiredIds } }),
      ...(Object.keys(added).length === 0 ? {} : { labels: added }),
    };
    // Patches the subresource nodes/status, because the node's permission for it includes labels
    // and annotations.
    const status = { ...ref, subresource: 'status' };
    await api.patch<Node>(status, { kind: 'merge', body: { metadata } }, signal);
    isPublished();
  }

  #idsIn(text: string | undefined): Readonly<Record<string, string>> {
    const before = Object.entries(idsOf(text)).filter(([driver]) => !this.#removed.has(driver));
    const now = [...this.#installed.values()].map(({ driver, nodeId }) => [driver, nodeId] as const);
    const all = new Map([...before, ...now]);
    return Object.fromEntries([...all].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  /**
   * Rejects every driver whose topology labels collide with labels of the Node. A driver that
   * registered before the Node was read could not be checked at its registration.
   */
  #rejectCollisions(labels: Readonly<Record<string, string>>): void {
    for (const [driver, refused] of [...this.#unpublished]) {
      const because = collisionIn(labels, this.#installed.get(driver)?.topology ?? {});
      if (because === undefined) continue;
      refused(because);
      // The rejection of a driver whose registration is still pending is retried later.
      if (this.#installed.has(driver)) throw new KubelingError('PLUGIN_REFUSED', because);
    }
  }

  /** The topology labels of a node must not change under its pods: existing ones are kept. */
  #labelsOfOthers(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const desired = [...this.#installed.values()].flatMap(({ topology }) => Object.entries(topology));
    return Object.fromEntries(desired.filter(([key]) => labels[key] === undefined));
  }

  async #publishCsiNode(node: Node, signal: AbortSignal): Promise<void> {
    const { api, nodeName: name } = this.#deps;
    const resource = apiResources.csiNodes;
    const found = await api.get<CSINode>({ resource, name }, {}, signal).catch((error: unknown) => {
      if (isApiCode(error, 'API_NOT_FOUND')) return undefined;
      throw error;
    });
    const owner = node.metadata?.uid ?? '';
    const isOurs = found?.metadata?.ownerReferences?.some(({ uid }) => uid === owner) === true;
    if (found !== undefined && !isOurs) {
      const { uid } = found.metadata ?? {};
      await api.delete({ resource, name }, { uid }, signal);
    }
    if (found === undefined || !isOurs) {
      await api.create<CSINode>({ resource }, this.#newObject(owner), signal);
      return;
    }
    // The API server returns an empty list of drivers as null.
    const before: readonly CSINodeDriver[] = (found.spec as Partial<CSINode['spec']>).drivers ?? [];
    const drivers = this.#otherDrivers(before);
    if (JSON.stringify(drivers) === JSON.stringify(before)) return;
    await api.update<CSINode>({ resource, name }, { ...found, spec: { drivers } } as CSINode, signal);
  }

  #newObject(uid: string): CSINode {
    const { nodeName: name } = this.#deps;
    return {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: {
        name,
        annotations: { [migratedAnnotation]: migrated },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
      },
      spec: { drivers: this.#otherDrivers([]) },
    };
  }

  #otherDrivers(before: readonly CSINodeDriver[]): readonly CSINodeDriver[] {
    const retained = before.filter(({ name }) => !this.#removed.has(name) && !this.#installed.has(name));
    return [...retained, ...[...this.#installed.values()].map(entryOf)];
  }
}

function collisionIn(
  labels: Readonly<Record<string, string>>,
  topology: DriverOnNode['topology'],
): string | undefined {
  for (const [key, value] of Object.entries(topology)) {
    const before = labels[key];
    if (before === undefined || before === value) continue;
    const [name, reported, existing] = [key, value, before].map((text) => JSON.stringify(text));
    return `detected topology value collision: driver reported ${name}:${reported} but existing label is ${name}:${existing}`;
  }
  return undefined;
}

function entryOf({ driver, nodeId, topology, maxVolumes }: DriverOnNode): CSINodeDriver {
  return {
    name: driver,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).toSorted(),
    ...(maxVolumes === undefined ? {} : { allocatable: { count: maxVolumes } }),
  };
}

function idsOf(text: string | undefined): Readonly<Record<string, string>> {
  try {
    const value = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
