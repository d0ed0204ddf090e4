import type { ContainerdEvent, ContainerStatus, CriClient } from '../../src/cri/index.ts';
import { isKind } from '../../src/lib/index.ts';
import { eventually } from '../kubeling-node.ts';

/** A container of a pod that the runtime has started. */
export interface Instance {
  readonly id: string;
  readonly uid: string;
  /** The name of the pod in kubeling's status. */
  readonly podName: string;
  readonly container: string;
  readonly attempt: number;
  /** The reason of the exit as reported by the runtime; undefined while the container runs. */
  readonly end: string | undefined;
}

interface Started {
  readonly id: string;
  readonly startedMs: number;
  end: string | undefined;
  status: ContainerStatus | undefined;
}

const looks = 50;
const lookAgainMs = 20;

/**
 * Reads the runtime's event stream from the first pod to the last, independently of kubeling and
 * its restarts, and therefore observes every start. A container that was started twice, or that ran
 * at the same time as another instance, may leave no other trace.
 */
export class Witness implements AsyncDisposable {
  readonly #cri: CriClient;
  readonly #controller = new AbortController();
  readonly #started = new Map<string, Started>();
  readonly #sandboxes = new Set<string>();
  readonly #problems: string[] = [];
  readonly #looking = new Set<Promise<void>>();
  readonly #reading: Promise<void>;
  #stands = false;

  static async open(cri: CriClient): Promise<Witness> {
    const witness = new Witness(cri);
    await eventually('events to arrive', async () => {
      await cri.publishContainerdEvent('witness', witness.#controller.signal);
      return witness.#stands ? true : undefined;
    });
    return witness;
  }

  private constructor(cri: CriClient) {
    this.#cri = cri;
    this.#reading = this.#read();
  }

  get problems(): readonly string[] {
    return this.#problems;
  }

  /** All started containers in the order of their starts. */
  get instances(): readonly Instance[] {
    return [...this.#started.values()].flatMap(({ id, status, end }) =>
      status === undefined ? [] : [{ id, ...nameOf(status), attempt: status.metadata?.attempt ?? 0, end }],
    );
  }

  /** The IDs by which leftovers of removed containers and pods are found. */
  get words(): readonly string[] {
    const uids = this.instances.map(({ uid }) => uid);
    return [...new Set([...this.#started.keys(), ...this.#sandboxes, ...uids])];
  }

  /** Waits until all received events are processed. */
  async idle(): Promise<void> {
    while (this.#looking.size > 0) await Promise.all(this.#looking);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error('the witness was stopped'));
    await this.#reading;
    await this.idle();
  }

  async #read(): Promise<void> {
    const { signal } = this.#controller;
    try {
      for await (const event of this.#cri.containerdEvents(signal)) this.#heard(event);
      throw new Error('the event stream ended');
    } catch (error) {
      if (!signal.aborted) this.#problems.push(`The witness became blind: ${error}`);
    }
  }

  #heard({ topic, containerId, atMs }: ContainerdEvent): void {
    this.#stands = true;
    if (topic === '/tasks/start') this.#look(this.#start(containerId, atMs));
    if (topic === '/tasks/exit') this.#look(this.#exit(containerId));
  }

  #look(work: Promise<void>): void {
    const reported = work
      .catch((error) => {
        if (!this.#controller.signal.aborted) this.#problems.push(`The witness cannot look: ${error}`);
      })
      .finally(() => this.#looking.delete(reported));
    this.#looking.add(reported);
  }

  async #start(id: string, startedMs: number): Promise<void> {
    if (this.#started.has(id)) this.#problems.push(`${id} was started twice`);
    const before = [...this.#started.values()];
    const started: Started = { id, startedMs, end: undefined, status: undefined };
    this.#started.set(id, started);
    started.status = await this.#status(id);
    if (started.status === undefined || nameOf(started.status).uid === '') {
      this.#started.delete(id);
      this.#sandboxes.add(id);
      return;
    }
    const { status } = started;
    const { podName, container } = nameOf(status);
    for (const other of before) {
      if (other.status === undefined) continue;
      const named = nameOf(other.status);
      if (named.podName !== podName || named.container !== container) continue;
      await this.#compare(other, started, status);
    }
  }

  /**
   * Checks that, of two containers of pods with the same name, the earlier one had exited before
   * the later one started, also after an edit of the manifest.
   */
  async #compare(earlier: Started, later: Started, status: ContainerStatus): Promise<void> {
    const { uid, podName, container } = nameOf(status);
    const before = earlier.status;
    const attempt = status.metadata?.attempt;
    if (before !== undefined && nameOf(before).uid === uid && before.metadata?.attempt === attempt)
      this.#problems.push(`attempt ${attempt} of ${container} of ${podName} was started twice`);
    const now = earlier.end === undefined ? await this.#status(earlier.id) : undefined;
    if (now === undefined) return;
    const finishedMs = now.state === 'CONTAINER_EXITED' ? Number(now.finishedAt / 1_000_000n) : Infinity;
    if (finishedMs > later.startedMs + 1)
      this.#problems.push(`${container} of ${podName} ran twice at a time: ${earlier.id} and ${later.id}`);
  }

  /**
   * Repeats the query, because the exit event is sent a moment before the runtime's status reports
   * the exit.
   */
  async #exit(id: string): Promise<void> {
    for (let look = 0; look < looks; look++) {
      const status = await this.#status(id);
      const started = this.#started.get(id);
      if (status === undefined || status.state === 'CONTAINER_EXITED') {
        if (started !== undefined)
          started.end = status === undefined ? 'removed' : `${status.reason} ${status.exitCode}`;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
    }
    this.#problems.push(`${id} ended, but the runtime does not say so`);
  }

  /**
   * Returns undefined if the runtime has no such container: the ID is that of a sandbox, or the
   * container was removed.
   */
  async #status(containerId: string): Promise<ContainerStatus | undefined> {
    try {
      return (await this.#cri.containerStatus({ containerId }, this.#controller.signal)).status;
    } catch (error) {
      if (isKind(error, 'NotFound')) return undefined;
      throw error;
    }
  }
}

function nameOf({ labels, metadata }: ContainerStatus) {
  return {
    uid: labels['io.kubernetes.pod.uid'] ?? '',
    podName: labels['io.kubernetes.pod.name'] ?? '',
    container: metadata?.name ?? '',
  };
}
