import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../src/kinds/index.ts';
import type { ApiDoor } from '../cluster/api-door.ts';
import type { AuditLog } from '../cluster/audit-log.ts';
import type { ClusterNode } from '../cluster/cluster-node.ts';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { patiently } from '../cluster/patiently.ts';
import { SmallCluster } from '../cluster/small-cluster.ts';

type Tell = (text: string) => void;

interface Parts {
  /** The directory of the mark files, to which containers append a line whenever they start. */
  readonly dir: string;
  readonly cluster: SmallCluster;
  readonly tell: Tell;
}

/** Opens the inspector of the node's process, which ProcessInsight uses. */
export const insightful = { NODE_OPTIONS: '--inspect-port=0' };

/** A timeout for tests with high load on a busy machine. */
export const longMs = 300_000;

/**
 * A cluster with one node, which reaches its API server only through a proxy; the test connects
 * directly. Each container appends a line to a mark file when it starts, so that the starts are
 * recorded even when no API responds.
 */
export class FaultyCluster {
  readonly #parts: Parts;

  /** Starts a real cluster unless another one is given. */
  static async open(
    tell: Tell,
    openCluster: () => Promise<SmallCluster> = () => SmallCluster.open({}, { environment: insightful }),
  ): Promise<FaultyCluster> {
    const dir = await mkdtemp(join(tmpdir(), 'klg-faulty-'));
    try {
      await mkdir(join(dir, 'marks'));
      return new FaultyCluster({ dir, cluster: await openCluster(), tell });
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  get audit(): AuditLog {
    return this.#parts.cluster.audit;
  }

  get plane(): ControlPlane {
    return this.#parts.cluster.plane;
  }

  get door(): ApiDoor {
    return this.#parts.cluster.door;
  }

  get node(): ClusterNode {
    return this.#parts.cluster.node;
  }

  tell(text: string): void {
    this.#parts.tell(text);
  }

  /** The directory that containers mount as `/marks`. */
  get marksDir(): string {
    return join(this.#parts.dir, 'marks');
  }

  /**
   * Returns the content of a mark file, to which containers append a line when they start; empty if
   * the file does not exist.
   */
  async text(name: string): Promise<string> {
    return await readFile(join(this.marksDir, name), 'utf8').catch(() => '');
  }

  async marks(name: string): Promise<readonly string[]> {
    return (await this.text(name)).split('\n').slice(0, -1);
  }

  /**
   * Returns the start times of all containers that write to this mark file, in seconds since boot.
   */
  async starts(name: string): Promise<readonly number[]> {
    return (await this.marks(name)).map(Number);
  }

  async mark(name: string): Promise<void> {
    await writeFile(join(this.marksDir, name), '');
  }

  async unmark(name: string): Promise<void> {
    await rm(join(this.marksDir, name), { force: true });
  }

  /** Returns all pods of the API except system pods, by name. */
  async pods(): Promise<ReadonlyMap<string, Pod>> {
    const path = '/api/v1/namespaces/default/pods';
    const list = await this.plane.get<{ readonly items: readonly Pod[] }>(path);
    return new Map((list?.items ?? []).map((pod) => [pod.metadata?.name ?? '', pod]));
  }

  /** Waits until all named pods meet their conditions; returns them in the given order. */
  async allAre(names: readonly string[], what: string, wanted: (pod: Pod) => boolean): Promise<Pod[]> {
    let missing: readonly string[] = [];
    return await patiently(
      `${names.length} pods to be ${what}`,
      async () => {
        const pods = await this.pods();
        const found = names.flatMap((name) => pods.get(name) ?? []).filter(wanted);
        missing = names.filter((name) => !found.some(({ metadata }) => metadata?.name === name));
        return missing.length === 0 ? found : undefined;
      },
      () => `${missing.join(' ')}\n${this.node.out.slice(-6_000)}`,
      longMs,
    );
  }

  /** Waits until the named pods are completely removed from the API and the runtime. */
  async allAreGone(names: readonly string[]): Promise<void> {
    await patiently(
      `${names.length} pods to be gone`,
      async () => {
        const [pods, running] = [await this.pods(), await this.containers()];
        const isThere = (name: string) => pods.has(name) || running.some(({ pod }) => pod === name);
        return names.some(isThere) ? undefined : true;
      },
      () => this.node.out.slice(-6_000),
      longMs,
    );
  }

  async remove(names: readonly string[]): Promise<void> {
    await this.plane.kubectl('delete', 'pod', '--wait=false', ...names);
    await this.allAreGone(names);
  }

  /** Returns the running containers as reported by the runtime. */
  async containers(): Promise<readonly { readonly pod: string; readonly id: string }[]> {
    const filter = { state: { state: 'CONTAINER_RUNNING' } } as const;
    const { containers } = await this.node.cri.listContainers({ filter }, AbortSignal.timeout(longMs));
    return containers
      .map(({ id, labels }) => ({ pod: labels['io.kubernetes.pod.name'] ?? '', id }))
      .toSorted((each, other) => (each.id < other.id ? -1 : 1));
  }

  async containersOf(names: readonly string[]): Promise<readonly string[]> {
    const all = await this.containers();
    return all.filter(({ pod }) => names.includes(pod)).map(({ pod, id }) => `${pod} ${id}`);
  }

  /** Removes the cluster, and checks that it left nothing on the machine. */
  async close(how: 'in-order' | 'after-failure'): Promise<void> {
    const { dir, cluster, tell } = this.#parts;
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    if (how === 'after-failure') tell(cluster.told());
    const left = cluster[Symbol.asyncDispose]();
    // After a failed test, problems during the removal are ignored.
    await (how === 'in-order' ? left : left.catch(() => {}));
  }
}

/**
 * Returns the time since boot in seconds, which containers also write to their mark files when they
 * start.
 */
export async function uptimeSeconds(): Promise<number> {
  return Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]);
}
