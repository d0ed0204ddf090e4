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

/** What a driver says of this node. */
export interface DriverOnNode {
  readonly driver: string;
  readonly nodeId: string;
  readonly topology: Readonly<Record<string, string>>;
  readonly maxVolumes: number | undefined;
}

export interface CsiNodeDeps {
  readonly api: Pick<ApiClient, 'get' | 'create' | 'update' | 'patch' | 'delete'>;
  readonly nodeName: string;
  /** The Node as newly as it is known. */
  readonly node: () => Node | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What `problem` answers is another now. */
  readonly initialized?: (() => void) | undefined;
}

const idAnnotation = 'csi.volume.kubernetes.io/nodeid';
const migratedAnnotation = 'storage.alpha.kubernetes.io/migrated-plugins';
/** Volumes of these kinds are left to drivers of their own everywhere. */
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
 * Tells the cluster which drivers this node has: in its CSINode, and by annotation and labels of its Node. What is to be
 * told is kept until it has been, so that drivers need not wait for an API server that is away.
 */
export class CsiNodePublisher {
  readonly #deps: CsiNodeDeps;
  readonly #installed = new Map<string, DriverOnNode>();
  /** How each learns that it cannot be one of this node after all, until the Node has its place. */
  readonly #unplaced = new Map<string, (why: string) => void>();
  /** Drivers that were here in this life and are no more; those of earlier lives may be about to come. */
  readonly #removed = new Set<string>();
  readonly #changes: HintLatch;
  /** Whether the cluster has the object of this node: before, nobody knows which volumes it can have. */
  #object: 'unknown' | 'there' = 'unknown';

  constructor(deps: CsiNodeDeps) {
    this.#deps = deps;
    this.#changes = new HintLatch(deps.clock);
    // The object should be there though there is no driver.
    this.#changes.raise();
  }

  /** Why a driver cannot be one of this node, whose place is known to be another; undefined as far as is known. */
  collision({ driver, topology }: DriverOnNode): string | undefined {
    const others = [...this.#installed.values()].filter((other) => other.driver !== driver);
    const told = Object.assign({}, ...others.map((other) => other.topology));
    return collisionIn({ ...told, ...this.#deps.node()?.metadata?.labels }, topology);
  }

  /** What has to be asked of the API first comes later: `refused` is told if the driver cannot be one of this node. */
  installed(facts: DriverOnNode, refused: (why: string) => void): void {
    const before = this.#installed.get(facts.driver)?.topology;
    if (before === undefined || collisionIn(before, facts.topology) !== undefined)
      this.#unplaced.set(facts.driver, refused);
    this.#installed.set(facts.driver, facts);
    this.#removed.delete(facts.driver);
    this.#changes.raise();
  }

  removed(driver: string): void {
    this.#installed.delete(driver);
    this.#unplaced.delete(driver);
    this.#removed.add(driver);
    this.#changes.raise();
  }

  /** Why the node cannot take pods yet. */
  problem(): string | undefined {
    return this.#object === 'there' ? undefined : 'CSINode is not yet initialized';
  }

  /** The Node has become known or another. */
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
        logger.warn('The drivers of this node cannot be told to the cluster, it is tried again', {
          because: describeError(error),
          waitMs,
        });
        await this.#again(waitMs, signal);
      }
    }
  }

  async #again(waitMs: number, signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(waitMs, signal);
    this.#changes.raise();
  }

  async #publish(node: Node, signal: AbortSignal): Promise<void> {
    if (this.#installed.size > 0 || this.#removed.size > 0) await this.#publishNode(signal);
    await this.#publishCsiNode(node, signal);
    if (this.#object === 'there') return;
    this.#object = 'there';
    this.#deps.initialized?.();
  }

  async #publishNode(signal: AbortSignal): Promise<void> {
    const { api, nodeName: name } = this.#deps;
    const ref = { resource: apiResources.nodes, name };
    const node = await api.get<Node>(ref, {}, signal);
    const { annotations = {}, labels = {}, uid, resourceVersion } = node.metadata ?? {};
    this.#rejectCollisions(labels);
    const placed = [...this.#unplaced.keys()];
    const isPlaced = () => {
      for (const driver of placed) this.#unplaced.delete(driver);
    };
    const ids = this.#idsIn(annotations[idAnnotation]);
    const wantedIds = Object.keys(ids).length === 0 ? null : JSON.stringify(ids);
    const added = this.#labelsBesides(labels);
    const isSame = (annotations[idAnnotation] ?? null) === wantedIds;
    if (isSame && Object.keys(added).length === 0) return isPlaced();
    const metadata = {
      uid,
      resourceVersion,
      ...(isSame ? {} : { annotations: { [idAnnotation]: wantedIds } }),
      ...(Object.keys(added).length === 0 ? {} : { labels: added }),
    };
    // A node has the right to write its status, and labels and annotations with it.
    const status = { ...ref, subresource: 'status' };
    await api.patch<Node>(status, { kind: 'merge', body: { metadata } }, signal);
    isPlaced();
  }

  #idsIn(text: string | undefined): Readonly<Record<string, string>> {
    const before = Object.entries(idsOf(text)).filter(([driver]) => !this.#removed.has(driver));
    const now = [...this.#installed.values()].map(({ driver, nodeId }) => [driver, nodeId] as const);
    const all = new Map([...before, ...now]);
    return Object.fromEntries([...all].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** A driver that registered before anybody knew of the Node learns only here that it cannot be one of it. */
  #rejectCollisions(labels: Readonly<Record<string, string>>): void {
    for (const [driver, refused] of [...this.#unplaced]) {
      const because = collisionIn(labels, this.#installed.get(driver)?.topology ?? {});
      if (because === undefined) continue;
      refused(because);
      // As long as it is not even told that it is registered, nobody can take that back.
      if (this.#installed.has(driver)) throw new KubelingError('PLUGIN_REFUSED', because);
    }
  }

  /** Where a node is does not change under its pods: a value that another one gave stays. */
  #labelsBesides(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const wanted = [...this.#installed.values()].flatMap(({ topology }) => Object.entries(topology));
    return Object.fromEntries(wanted.filter(([key]) => labels[key] === undefined));
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
      await api.create<CSINode>({ resource }, this.#fresh(owner), signal);
      return;
    }
    // API servers write an empty list as null.
    const before: readonly CSINodeDriver[] = (found.spec as Partial<CSINode['spec']>).drivers ?? [];
    const drivers = this.#driversBesides(before);
    if (JSON.stringify(drivers) === JSON.stringify(before)) return;
    await api.update<CSINode>({ resource, name }, { ...found, spec: { drivers } } as CSINode, signal);
  }

  #fresh(uid: string): CSINode {
    const { nodeName: name } = this.#deps;
    return {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: {
        name,
        annotations: { [migratedAnnotation]: migrated },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
      },
      spec: { drivers: this.#driversBesides([]) },
    };
  }

  #driversBesides(before: readonly CSINodeDriver[]): readonly CSINodeDriver[] {
    const kept = before.filter(({ name }) => !this.#removed.has(name) && !this.#installed.has(name));
    return [...kept, ...[...this.#installed.values()].map(entryOf)];
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
