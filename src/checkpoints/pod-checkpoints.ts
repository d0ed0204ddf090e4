import { posix } from 'node:path';
import type { PodStatus } from '../kinds/index.ts';
import { type BackoffState, type Clock, describeError, type Logger, withDeadline } from '../lib/index.ts';
import {
  isStaticPod,
  isTerminalPhase,
  type Pod,
  type PodSource,
  type PodUid,
  sameJson,
  sourceOf,
} from '../pods/index.ts';
import type { HookCheckpoint, RuntimeFiles, StartCheckpoint } from '../runtime/index.ts';
import type { BoundVolumeRecords } from '../volumes/index.ts';
import {
  decodeNotes,
  encodeNotes,
  type NotedTermination,
  type PodNotes,
  terminationMsLeft,
} from './checkpoint-entry.ts';
import { notedContainers } from './container-entry.ts';
import { notedHooks } from './hook-entries.ts';
import { listPodUids } from './pod-directories.ts';
import { notedEnd } from './pod-end.ts';
import { isShutDown } from './shutdown-status.ts';
import { type NotedStatus, notedStatus, probedFlags } from './status-entry.ts';

export interface NotebookDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RuntimeFiles;
  /** The directory with one subdirectory for each pod. */
  readonly podsDir: string;
  /** Tells this run of the machine from every other. */
  readonly readBoot: () => Promise<string>;
}

interface Page {
  notes: PodNotes;
  /** When the noted termination ends, by the monotonic clock. */
  deadlineMs: number | undefined;
  /** What the file says, as far as known. */
  written: PodNotes | undefined;
  /** Settles when everything noted so far is written; never rejects. */
  writing: Promise<void>;
}

const fileName = 'kubeling.json';
const patienceMs = 5_000;
/** Less is not told to the runtime, and makes no difference. */
const leastMs = 1_000;
/** Far more than the notes of a pod ever take. */
const largestFile = 256 * 1024;
/** A power cut ends everything the notes are about, so nothing waits for the disk. */
const writeOptions = { mode: 0o600, survives: 'crash' } as const;

/**
 * The notes on all pods, each in the directory of its pod, with which it goes. What is noted holds at once; the answer
 * settles when it is on disk, or cannot be for now. A note that is not written is lost to the next kubelet only.
 */
export class PodNotebook {
  readonly hooks: HookCheckpoint;
  readonly #deps: NotebookDeps;
  readonly #pages = new Map<PodUid, Page>();
  /** Empty while nobody knows. */
  #boot = '';

  constructor(deps: NotebookDeps) {
    this.#deps = deps;
    this.hooks = notedHooks({
      clock: deps.clock,
      get: (uid) => this.get(uid),
      change: (uid, change) => this.#change(uid, change),
    });
  }

  get size(): number {
    return this.#pages.size;
  }

  /** Reads what earlier kubelets have noted; to be called once, before anything else. */
  async open(): Promise<void> {
    const { files, podsDir, logger, readBoot } = this.#deps;
    this.#boot = (await readBoot().catch(() => '')).trim();
    try {
      await Promise.all((await listPodUids(files, podsDir)).map((uid) => this.#read(uid)));
    } catch (error) {
      logger.error('Cannot read the notes on pods; what runs is taken up without them', error);
    }
  }

  get(uid: PodUid): PodNotes | undefined {
    return this.#pages.get(uid)?.notes;
  }

  /** Whether the pod was let run here since the machine was started. */
  ranInThisBoot(uid: PodUid): boolean {
    return this.#boot !== '' && this.get(uid)?.boot === this.#boot;
  }

  /** Whether the pod was let run here, in this boot of the machine or an earlier one. */
  wasLetRun(uid: PodUid): boolean {
    return (this.get(uid)?.boot ?? '') !== '';
  }

  /** What is left of the time a pod has to end, in whole seconds and at least one; undefined unless it is ending. */
  secondsLeft(uid: PodUid): number | undefined {
    const deadlineMs = this.#pages.get(uid)?.deadlineMs;
    if (deadlineMs === undefined) return undefined;
    // The clock has fractions: what they cannot tell exactly must not count as one second more.
    return Math.max(1, Math.ceil(Math.round(deadlineMs - this.#deps.clock.monotonicMs()) / 1_000));
  }

  /** All crash back-offs there are notes of. */
  restarts(): readonly (readonly [string, BackoffState])[] {
    return [...this.#pages.values()].flatMap(({ notes }) => Object.entries(notes.restarts ?? {}));
  }

  /** What the pod's status has to go on with; undefined for a pod that begins anew. */
  statusOf(uid: PodUid): NotedStatus | undefined {
    const { status, termination } = this.get(uid) ?? {};
    if (status !== undefined && isShutDown(status)) return undefined;
    // Whoever was told to end without having come to an end was not wanted any more.
    return termination !== undefined && status?.phase === undefined ? undefined : status;
  }

  /** A source has brought the pod. Nothing is written before the pod is let run. */
  see(pod: Pod, life: 'goes-on' | 'anew'): void {
    const { uid } = pod.metadata;
    const page = this.#pages.get(uid);
    if (page === undefined) this.#pages.set(uid, newPage(firstNotes(pod), undefined));
    else
      page.notes = {
        ...(life === 'anew' ? withoutStatus(page.notes) : page.notes),
        source: sourceNameOf(pod),
      };
  }

  /** The pod is let run. Writes only when that is news. */
  async begin(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { termination: _over, status: before, ...notes } = this.get(uid) ?? {};
    const status = before?.startTime === now.startTime ? before : keptOf(pod, now);
    const kept = status === undefined ? {} : { status };
    await this.#note(uid, { ...notes, ...firstNotes(pod), boot: this.#boot, ...kept }, undefined);
  }

  /** What was published of a pod; written only when the runtime could not tell it the next kubelet. */
  async published(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { notes, deadlineMs } = this.#pages.get(uid) ?? {};
    // That it has ended, and how, is noted by who knows whether it was told to.
    if (notes?.status === undefined || notes.status.phase !== endOf(now)) return;
    const fresh = isNews(pod, notes.status, now) ? keptOf(pod, now) : undefined;
    if (fresh === undefined) return;
    const probed = fresh.phase === undefined ? probedFlags(pod, now) : {};
    const status = Object.keys(probed).length === 0 ? fresh : { ...fresh, probed };
    await this.#note(uid, { ...notes, status }, deadlineMs);
  }

  /** The pod has ended for good: no later kubelet runs it again for as long as it is wanted. */
  async closed(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const status = keptOf(pod, now);
    if (status === undefined) return;
    const page = this.#pages.get(uid);
    await this.#note(uid, { ...(page?.notes ?? firstNotes(pod)), status }, page?.deadlineMs);
  }

  /** The same of a pod that this node ends for reasons of its own: the API may hear of it only after the next start. */
  async endedHere(pod: Pod, now: PodStatus): Promise<void> {
    const end = notedEnd(now);
    if (isStaticPod(pod)) await this.closed(pod, now);
    else if (end !== undefined) {
      const { uid } = pod.metadata;
      const page = this.#pages.get(uid);
      await this.#note(uid, { ...(page?.notes ?? firstNotes(pod)), end }, page?.deadlineMs);
    }
  }

  /** Its source has it no more: how it stood says nothing about another pod of its UID. */
  async unwanted(uid: PodUid): Promise<void> {
    const page = this.#pages.get(uid);
    if (page === undefined) return;
    const isOver = page.notes.status?.phase !== undefined;
    page.notes = withoutStatus(page.notes);
    if (isOver) await this.#note(uid, page.notes, page.deadlineMs);
  }

  async initialized(uid: PodUid, sandboxId: string): Promise<void> {
    await this.#change(uid, (notes) => ({ ...notes, initializedSandbox: sandboxId }));
  }

  /** What is known of a start that an earlier kubelet has asked for, or this one. */
  readonly starts: StartCheckpoint = {
    recordStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, (notes) => ({ ...notes, startUnderWay: containerId })),
    clearStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, ({ startUnderWay, ...notes }) =>
        startUnderWay === undefined || startUnderWay === containerId ? notes : { ...notes, startUnderWay },
      ),
  };

  /** Which PersistentVolumes pods have. */
  readonly volumes: BoundVolumeRecords = {
    of: (uid) => this.get(uid)?.volumes ?? {},
    others: (uid) =>
      [...this.#pages].flatMap(([other, { notes }]) =>
        other === uid ? [] : Object.values(notes.volumes ?? {}),
      ),
    note: (pod, volumes) => {
      const page = this.#pages.get(pod.metadata.uid);
      return this.#note(pod.metadata.uid, { ...(page?.notes ?? firstNotes(pod)), volumes }, page?.deadlineMs);
    },
    forget: async (uid) => {
      const { volumes } = this.get(uid) ?? {};
      if (volumes !== undefined) await this.#change(uid, ({ volumes: _gone, ...notes }) => notes);
    },
  };

  /** All that is known of how often containers of the pod have ended. */
  async restarted(uid: PodUid, restarts: Iterable<readonly [string, BackoffState]>): Promise<void> {
    const all = Object.fromEntries(restarts);
    await this.#change(uid, (notes) => ({ ...notes, restarts: all }));
  }

  /**
   * The pod is being stopped, with so much time from now on; one that is being stopped already gets no more than it
   * has left.
   */
  async terminating(pod: Pod, graceSeconds: number): Promise<void> {
    const { clock } = this.#deps;
    const page = this.#pages.get(pod.metadata.uid);
    const deadlineMs = clock.monotonicMs() + graceSeconds * 1_000;
    if (deadlineMs >= (page?.deadlineMs ?? Number.POSITIVE_INFINITY)) return;
    const termination = { sinceMs: clock.now(), graceSeconds };
    await this.#note(pod.metadata.uid, { ...(page?.notes ?? firstNotes(pod)), termination }, deadlineMs);
  }

  /** Sees to it that a later kubelet finds the same end of a termination, though the clock was set since it was noted. */
  async keepDeadline(uid: PodUid): Promise<void> {
    const { clock } = this.#deps;
    const page = this.#pages.get(uid);
    const termination = page?.notes.termination;
    if (page?.deadlineMs === undefined || termination === undefined) return;
    const leftMs = Math.max(0, page.deadlineMs - clock.monotonicMs());
    const drift = Math.abs(terminationMsLeft(termination, clock.now()) - Math.max(leftMs, leastMs));
    if (drift < leastMs) return;
    const sinceMs = Math.max(0, Math.round(clock.now() - (termination.graceSeconds * 1_000 - leftMs)));
    await this.#note(uid, { ...page.notes, termination: { ...termination, sinceMs } }, page.deadlineMs);
  }

  /** Nothing of the pod runs any more. What is noted of one that nobody wants goes with its directory soon. */
  async ended(uid: PodUid, fate: 'wanted' | 'unwanted'): Promise<void> {
    const page = this.#pages.get(uid);
    if (page === undefined) return;
    const { termination: _over, postStarts: _due, preStops: _begun, ...notes } = page.notes;
    page.notes = notes;
    page.deadlineMs = undefined;
    if (fate === 'wanted' && page.written !== undefined) await this.#note(uid, notes, undefined);
  }

  /** Everything noted so far is on disk, or cannot be for now: a later kubelet knows it, too. */
  async settled(): Promise<void> {
    const pages = [...this.#pages.values()];
    await this.#soon(this.#deps.podsDir, Promise.all(pages.map(({ writing }) => writing)));
  }

  /** Forgets the pods that have no directory any more; to be asked of those that nobody works on. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#pages.keys()]) if (!isKept(uid)) this.#pages.delete(uid);
  }

  async #change(uid: PodUid, change: (notes: PodNotes) => PodNotes): Promise<void> {
    const page = this.#pages.get(uid);
    if (page !== undefined) await this.#note(uid, change(page.notes), page.deadlineMs);
  }

  async #note(uid: PodUid, notes: PodNotes, deadlineMs: number | undefined): Promise<void> {
    const page = this.#pages.get(uid) ?? newPage(notes, undefined);
    this.#pages.set(uid, page);
    page.notes = notes;
    page.deadlineMs = deadlineMs;
    page.writing = page.writing.then(() => this.#write(uid, page));
    await this.#soon(this.#path(uid), page.writing);
  }

  /** A disk that does not answer keeps nobody from going on. */
  async #soon(path: string, writing: Promise<unknown>): Promise<void> {
    const { clock, logger } = this.#deps;
    const patience = { clock, ms: patienceMs, what: 'write the notes on a pod' };
    try {
      await withDeadline(patience, () => writing, new AbortController().signal);
    } catch (error) {
      logger.error('The notes on a pod are not written yet', error, { path });
    }
  }

  /** Always what is noted last: what came in between needs no write of its own. */
  async #write(uid: PodUid, page: Page): Promise<void> {
    const { notes } = page;
    if (this.#pages.get(uid) !== page || sameJson(page.written, notes)) return;
    const path = this.#path(uid);
    try {
      await this.#deps.files.replace(path, encodeNotes(notes), writeOptions);
      page.written = notes;
    } catch (error) {
      page.written = undefined;
      this.#deps.logger.error('Cannot write the notes on a pod', error, { path });
    }
  }

  async #read(uid: PodUid): Promise<void> {
    const { files, logger } = this.#deps;
    const path = this.#path(uid);
    try {
      const bytes = await files.readEnd(path, largestFile + 1);
      if (bytes === undefined) return;
      const notes = bytes.byteLength > largestFile ? undefined : decodeNotes(bytes.toString('utf8'));
      if (notes === undefined) {
        logger.warn('The notes on a pod cannot be used; it goes on without', { path });
        return;
      }
      const page = newPage(notes, notes);
      this.#pages.set(uid, page);
      if (notes.termination !== undefined) await this.#resume(uid, notes, notes.termination);
    } catch (error) {
      logger.warn('The notes on a pod cannot be read; it goes on without', {
        path,
        because: describeError(error),
      });
    }
  }

  /** Where the clock was set back behind the beginning, the time counts from now on, also for who comes after us. */
  async #resume(uid: PodUid, notes: PodNotes, termination: NotedTermination): Promise<void> {
    const { clock } = this.#deps;
    const sinceMs = Math.min(termination.sinceMs, clock.now());
    const deadlineMs = clock.monotonicMs() + terminationMsLeft(termination, clock.now());
    await this.#note(uid, { ...notes, termination: { ...termination, sinceMs } }, deadlineMs);
  }

  #path(uid: PodUid): string {
    return posix.join(this.#deps.podsDir, uid, fileName);
  }
}

function firstNotes(pod: Pod): PodNotes {
  const { name, namespace } = pod.metadata;
  return { source: sourceNameOf(pod), name, namespace, boot: '' };
}

/** Of any other pod the API keeps the status. */
function keptOf(pod: Pod, status: PodStatus): NotedStatus | undefined {
  return isStaticPod(pod) ? notedStatus(status) : undefined;
}

function endOf({ phase }: PodStatus): string | undefined {
  return isTerminalPhase(phase) ? phase : undefined;
}

/** Of a pod that goes on what is over, and of its probed containers whether they are started and ready. */
function isNews(pod: Pod, noted: NotedStatus, now: PodStatus): boolean {
  if (noted.phase !== undefined) return !sameJson(noted, notedStatus(now));
  if (!sameJson(notedContainers(noted), notedContainers(now))) return true;
  return Object.entries(probedFlags(pod, now)).some(([id, flags]) => !sameJson(noted.probed?.[id], flags));
}

function withoutStatus({ status: _gone, ...notes }: PodNotes): PodNotes {
  return notes;
}

function sourceNameOf(pod: Pod): PodSource {
  const source = sourceOf(pod);
  return source === 'file' || source === 'http' ? source : 'api';
}

function newPage(notes: PodNotes, written: PodNotes | undefined): Page {
  return { notes, written, deadlineMs: undefined, writing: Promise.resolve() };
}
