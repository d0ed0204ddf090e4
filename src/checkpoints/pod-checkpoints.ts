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
  type CheckpointEntry,
  decodeEntry,
  encodeEntry,
  type TerminationEntry,
  terminationMsLeft,
} from './checkpoint-entry.ts';
import { containerEntries } from './container-entry.ts';
import { hookEntries } from './hook-entries.ts';
import { listPodUids } from './pod-directories.ts';
import { podEnd } from './pod-end.ts';
import { isShutDown } from './shutdown-status.ts';
import { probedFlags, type StatusEntry, statusEntry } from './status-entry.ts';

export interface PodCheckpointsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly files: RuntimeFiles;
  /** The directory with one subdirectory for each pod. */
  readonly podsDir: string;
  /** Tells this run of the machine from every other. */
  readonly readBoot: () => Promise<string>;
}

interface CheckpointFile {
  entry: CheckpointEntry;
  /** When the noted termination ends, by the monotonic clock. */
  deadlineMs: number | undefined;
  /** What the file says, as far as known. */
  written: CheckpointEntry | undefined;
  /** Settles when everything noted so far is written; never rejects. */
  writing: Promise<void>;
}

const fileName = 'kubeling.json';
const patienceMs = 5_000;
/** Less is not told to the runtime, and makes no difference. */
const leastMs = 1_000;
/** Far more than the entry of a pod ever take. */
const largestFile = 256 * 1024;
/** A power cut ends everything the entry are about, so nothing waits for the disk. */
const writeOptions = { mode: 0o600, survives: 'crash' } as const;

/**
 * The entry on all pods, each in the directory of its pod, with which it goes. What is noted holds at once; the answer
 * settles when it is on disk, or cannot be for now. A note that is not written is lost to the next kubelet only.
 */
export class PodCheckpoints {
  readonly hooks: HookCheckpoint;
  readonly #deps: PodCheckpointsDeps;
  readonly #entries = new Map<PodUid, CheckpointFile>();
  /** Empty while nobody knows. */
  #boot = '';

  constructor(deps: PodCheckpointsDeps) {
    this.#deps = deps;
    this.hooks = hookEntries({
      clock: deps.clock,
      get: (uid) => this.get(uid),
      change: (uid, change) => this.#change(uid, change),
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Reads what earlier kubelets have noted; to be called once, before anything else. */
  async open(): Promise<void> {
    const { files, podsDir, logger, readBoot } = this.#deps;
    this.#boot = (await readBoot().catch(() => '')).trim();
    try {
      await Promise.all((await listPodUids(files, podsDir)).map((uid) => this.#read(uid)));
    } catch (error) {
      logger.error('Failed to read pod checkpoints', error);
    }
  }

  get(uid: PodUid): CheckpointEntry | undefined {
    return this.#entries.get(uid)?.entry;
  }

  /** Whether the pod was let run here since the machine was started. */
  wasAdmittedInThisBoot(uid: PodUid): boolean {
    return this.#boot !== '' && this.get(uid)?.boot === this.#boot;
  }

  /** Whether the pod was let run here, in this boot of the machine or an earlier one. */
  wasAdmitted(uid: PodUid): boolean {
    return (this.get(uid)?.boot ?? '') !== '';
  }

  /** What is left of the time a pod has to end, in whole seconds and at least one; undefined unless it is ending. */
  secondsLeft(uid: PodUid): number | undefined {
    const deadlineMs = this.#entries.get(uid)?.deadlineMs;
    if (deadlineMs === undefined) return undefined;
    // The clock has fractions: what they cannot tell exactly must not count as one second more.
    return Math.max(1, Math.ceil(Math.round(deadlineMs - this.#deps.clock.monotonicMs()) / 1_000));
  }

  /** All crash back-offs there are entry of. */
  backoffs(): readonly (readonly [string, BackoffState])[] {
    return [...this.#entries.values()].flatMap(({ entry }) => Object.entries(entry.restarts ?? {}));
  }

  /** What the pod's status has to go on with; undefined for a pod that begins anew. */
  statusOf(uid: PodUid): StatusEntry | undefined {
    const { status, termination } = this.get(uid) ?? {};
    if (status !== undefined && isShutDown(status)) return undefined;
    // Whoever was told to end without having come to an end was not wanted any more.
    return termination !== undefined && status?.phase === undefined ? undefined : status;
  }

  /** A source has brought the pod. Nothing is written before the pod is let run. */
  observeSource(pod: Pod, life: 'goes-on' | 'anew'): void {
    const { uid } = pod.metadata;
    const file = this.#entries.get(uid);
    if (file === undefined) this.#entries.set(uid, newFile(newEntry(pod), undefined));
    else
      file.entry = {
        ...(life === 'anew' ? withoutStatus(file.entry) : file.entry),
        source: sourceNameOf(pod),
      };
  }

  /** The pod is let run. Writes only when that is news. */
  async recordAdmission(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { termination: _over, status: before, ...entry } = this.get(uid) ?? {};
    const status = before?.startTime === now.startTime ? before : statusOfStaticPod(pod, now);
    const kept = status === undefined ? {} : { status };
    await this.#record(uid, { ...entry, ...newEntry(pod), boot: this.#boot, ...kept }, undefined);
  }

  /** What was published of a pod; written only when the runtime could not tell it the next kubelet. */
  async recordStatus(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { entry, deadlineMs } = this.#entries.get(uid) ?? {};
    // That it has ended, and how, is noted by who knows whether it was told to.
    if (entry?.status === undefined || entry.status.phase !== terminalPhaseOf(now)) return;
    const fresh = isChanged(pod, entry.status, now) ? statusOfStaticPod(pod, now) : undefined;
    if (fresh === undefined) return;
    const probed = fresh.phase === undefined ? probedFlags(pod, now) : {};
    const status = Object.keys(probed).length === 0 ? fresh : { ...fresh, probed };
    await this.#record(uid, { ...entry, status }, deadlineMs);
  }

  /** The pod has ended for good: no later kubelet runs it again for as long as it is wanted. */
  async recordFinished(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const status = statusOfStaticPod(pod, now);
    if (status === undefined) return;
    const file = this.#entries.get(uid);
    await this.#record(uid, { ...(file?.entry ?? newEntry(pod)), status }, file?.deadlineMs);
  }

  /** The same of a pod that this node ends for reasons of its own: the API may hear of it only after the next start. */
  async recordKilled(pod: Pod, now: PodStatus): Promise<void> {
    const end = podEnd(now);
    if (isStaticPod(pod)) await this.recordFinished(pod, now);
    else if (end !== undefined) {
      const { uid } = pod.metadata;
      const file = this.#entries.get(uid);
      await this.#record(uid, { ...(file?.entry ?? newEntry(pod)), end }, file?.deadlineMs);
    }
  }

  /** Its source has it no more: how it stood says nothing about another pod of its UID. */
  async recordSourceRemoved(uid: PodUid): Promise<void> {
    const file = this.#entries.get(uid);
    if (file === undefined) return;
    const isOver = file.entry.status?.phase !== undefined;
    file.entry = withoutStatus(file.entry);
    if (isOver) await this.#record(uid, file.entry, file.deadlineMs);
  }

  async recordInitialized(uid: PodUid, sandboxId: string): Promise<void> {
    await this.#change(uid, (entry) => ({ ...entry, initializedSandbox: sandboxId }));
  }

  /** What is known of a start that an earlier kubelet has asked for, or this one. */
  readonly starts: StartCheckpoint = {
    recordStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, (entry) => ({ ...entry, startUnderWay: containerId })),
    clearStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, ({ startUnderWay, ...entry }) =>
        startUnderWay === undefined || startUnderWay === containerId ? entry : { ...entry, startUnderWay },
      ),
  };

  /** Which PersistentVolumes pods have. */
  readonly volumes: BoundVolumeRecords = {
    of: (uid) => this.get(uid)?.volumes ?? {},
    others: (uid) =>
      [...this.#entries].flatMap(([other, { entry }]) =>
        other === uid ? [] : Object.values(entry.volumes ?? {}),
      ),
    note: (pod, volumes) => {
      const file = this.#entries.get(pod.metadata.uid);
      return this.#record(pod.metadata.uid, { ...(file?.entry ?? newEntry(pod)), volumes }, file?.deadlineMs);
    },
    forget: async (uid) => {
      const { volumes } = this.get(uid) ?? {};
      if (volumes !== undefined) await this.#change(uid, ({ volumes: _gone, ...entry }) => entry);
    },
  };

  /** All that is known of how often containers of the pod have ended. */
  async recordBackoff(uid: PodUid, restarts: Iterable<readonly [string, BackoffState]>): Promise<void> {
    const all = Object.fromEntries(restarts);
    await this.#change(uid, (entry) => ({ ...entry, restarts: all }));
  }

  /**
   * The pod is being stopped, with so much time from now on; one that is being stopped already gets no more than it
   * has left.
   */
  async recordTermination(pod: Pod, graceSeconds: number): Promise<void> {
    const { clock } = this.#deps;
    const file = this.#entries.get(pod.metadata.uid);
    const deadlineMs = clock.monotonicMs() + graceSeconds * 1_000;
    if (deadlineMs >= (file?.deadlineMs ?? Number.POSITIVE_INFINITY)) return;
    const termination = { sinceMs: clock.now(), graceSeconds };
    await this.#record(pod.metadata.uid, { ...(file?.entry ?? newEntry(pod)), termination }, deadlineMs);
  }

  /** Sees to it that a later kubelet finds the same end of a termination, though the clock was set since it was noted. */
  async refreshDeadline(uid: PodUid): Promise<void> {
    const { clock } = this.#deps;
    const file = this.#entries.get(uid);
    const termination = file?.entry.termination;
    if (file?.deadlineMs === undefined || termination === undefined) return;
    const leftMs = Math.max(0, file.deadlineMs - clock.monotonicMs());
    const drift = Math.abs(terminationMsLeft(termination, clock.now()) - Math.max(leftMs, leastMs));
    if (drift < leastMs) return;
    const sinceMs = Math.max(0, Math.round(clock.now() - (termination.graceSeconds * 1_000 - leftMs)));
    await this.#record(uid, { ...file.entry, termination: { ...termination, sinceMs } }, file.deadlineMs);
  }

  /** Nothing of the pod runs any more. What is noted of one that nobody wants goes with its directory soon. */
  async recordTerminated(uid: PodUid, fate: 'wanted' | 'unwanted'): Promise<void> {
    const file = this.#entries.get(uid);
    if (file === undefined) return;
    const { termination: _over, postStarts: _due, preStops: _begun, ...entry } = file.entry;
    file.entry = entry;
    file.deadlineMs = undefined;
    if (fate === 'wanted' && file.written !== undefined) await this.#record(uid, entry, undefined);
  }

  /** Everything noted so far is on disk, or cannot be for now: a later kubelet knows it, too. */
  async flushed(): Promise<void> {
    const files = [...this.#entries.values()];
    await this.#waitForWrite(this.#deps.podsDir, Promise.all(files.map(({ writing }) => writing)));
  }

  /** Forgets the pods that have no directory any more; to be asked of those that nobody works on. */
  retain(isKept: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#entries.keys()]) if (!isKept(uid)) this.#entries.delete(uid);
  }

  async #change(uid: PodUid, change: (entry: CheckpointEntry) => CheckpointEntry): Promise<void> {
    const file = this.#entries.get(uid);
    if (file !== undefined) await this.#record(uid, change(file.entry), file.deadlineMs);
  }

  async #record(uid: PodUid, entry: CheckpointEntry, deadlineMs: number | undefined): Promise<void> {
    const file = this.#entries.get(uid) ?? newFile(entry, undefined);
    this.#entries.set(uid, file);
    file.entry = entry;
    file.deadlineMs = deadlineMs;
    file.writing = file.writing.then(() => this.#write(uid, file));
    await this.#waitForWrite(this.#path(uid), file.writing);
  }

  /** A disk that does not answer keeps nobody from going on. */
  async #waitForWrite(path: string, writing: Promise<unknown>): Promise<void> {
    const { clock, logger } = this.#deps;
    const patience = { clock, ms: patienceMs, what: 'write a pod checkpoint' };
    try {
      await withDeadline(patience, () => writing, new AbortController().signal);
    } catch (error) {
      logger.error('Failed to write pod checkpoint in time', error, { path });
    }
  }

  /** Always what is noted last: what came in between needs no write of its own. */
  async #write(uid: PodUid, file: CheckpointFile): Promise<void> {
    const { entry } = file;
    if (this.#entries.get(uid) !== file || sameJson(file.written, entry)) return;
    const path = this.#path(uid);
    try {
      await this.#deps.files.replace(path, encodeEntry(entry), writeOptions);
      file.written = entry;
    } catch (error) {
      file.written = undefined;
      this.#deps.logger.error('Failed to write pod checkpoint', error, { path });
    }
  }

  async #read(uid: PodUid): Promise<void> {
    const { files, logger } = this.#deps;
    const path = this.#path(uid);
    try {
      const bytes = await files.readEnd(path, largestFile + 1);
      if (bytes === undefined) return;
      const entry = bytes.byteLength > largestFile ? undefined : decodeEntry(bytes.toString('utf8'));
      if (entry === undefined) {
        logger.warn('Ignored invalid pod checkpoint', { path });
        return;
      }
      const file = newFile(entry, entry);
      this.#entries.set(uid, file);
      if (entry.termination !== undefined) await this.#resume(uid, entry, entry.termination);
    } catch (error) {
      logger.warn('Failed to read pod checkpoint', {
        path,
        because: describeError(error),
      });
    }
  }

  /** Where the clock was set back behind the beginning, the time counts from now on, also for who comes after us. */
  async #resume(uid: PodUid, entry: CheckpointEntry, termination: TerminationEntry): Promise<void> {
    const { clock } = this.#deps;
    const sinceMs = Math.min(termination.sinceMs, clock.now());
    const deadlineMs = clock.monotonicMs() + terminationMsLeft(termination, clock.now());
    await this.#record(uid, { ...entry, termination: { ...termination, sinceMs } }, deadlineMs);
  }

  #path(uid: PodUid): string {
    return posix.join(this.#deps.podsDir, uid, fileName);
  }
}

function newEntry(pod: Pod): CheckpointEntry {
  const { name, namespace } = pod.metadata;
  return { source: sourceNameOf(pod), name, namespace, boot: '' };
}

/** Of any other pod the API keeps the status. */
function statusOfStaticPod(pod: Pod, status: PodStatus): StatusEntry | undefined {
  return isStaticPod(pod) ? statusEntry(status) : undefined;
}

function terminalPhaseOf({ phase }: PodStatus): string | undefined {
  return isTerminalPhase(phase) ? phase : undefined;
}

/** Of a pod that goes on what is over, and of its probed containers whether they are started and ready. */
function isChanged(pod: Pod, noted: StatusEntry, now: PodStatus): boolean {
  if (noted.phase !== undefined) return !sameJson(noted, statusEntry(now));
  if (!sameJson(containerEntries(noted), containerEntries(now))) return true;
  return Object.entries(probedFlags(pod, now)).some(([id, flags]) => !sameJson(noted.probed?.[id], flags));
}

function withoutStatus({ status: _gone, ...entry }: CheckpointEntry): CheckpointEntry {
  return entry;
}

function sourceNameOf(pod: Pod): PodSource {
  const source = sourceOf(pod);
  return source === 'file' || source === 'http' ? source : 'api';
}

function newFile(entry: CheckpointEntry, written: CheckpointEntry | undefined): CheckpointFile {
  return { entry: entry, written, deadlineMs: undefined, writing: Promise.resolve() };
}
