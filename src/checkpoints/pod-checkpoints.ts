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
  /** The directory that contains one subdirectory per pod. */
  readonly podsDir: string;
  /** Reads the boot ID of the machine. */
  readonly readBoot: () => Promise<string>;
}

interface CheckpointFile {
  entry: CheckpointEntry;
  /** The deadline of the pod's termination, by the monotonic clock. */
  deadlineMs: number | undefined;
  /** The last known content of the checkpoint file. */
  written: CheckpointEntry | undefined;
  /** Resolves when all changes so far are written; never rejects. */
  writing: Promise<void>;
}

const fileName = 'kubeling.json';
const writeTimeoutMs = 5_000;
/** The smallest change of a deadline that is written: the runtime accepts only whole seconds. */
const minChangeMs = 1_000;
/** The maximum size of a checkpoint file, far more than any pod needs. */
const maxFileBytes = 256 * 1024;
/**
 * Writes do not wait for fsync: after a power failure the checkpoints are not needed, because all
 * containers have ended.
 */
const writeOptions = { mode: 0o600, survives: 'crash' } as const;

/**
 * The checkpoint entries of all pods, each stored in a file in the pod's directory and deleted with
 * it. A change takes effect in memory immediately; the returned promise resolves when the change is
 * on disk, or after a time-out. A change that could not be written is lost only if the kubelet
 * restarts.
 */
export class PodCheckpoints {
  readonly hooks: HookCheckpoint;
  readonly #deps: PodCheckpointsDeps;
  readonly #entries = new Map<PodUid, CheckpointFile>();
  /** The boot ID of the machine; empty while it is unknown. */
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

  /**
   * Reads the entries of previous kubelet processes; must be called once, before any other method.
   */
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

  /** Whether the pod was admitted on this node since the machine booted. */
  wasAdmittedInThisBoot(uid: PodUid): boolean {
    return this.#boot !== '' && this.get(uid)?.boot === this.#boot;
  }

  /** Whether the pod was admitted on this node, in this boot of the machine or a previous one. */
  wasAdmitted(uid: PodUid): boolean {
    return (this.get(uid)?.boot ?? '') !== '';
  }

  /**
   * Returns the remaining grace period of a terminating pod in whole seconds, at least one;
   * undefined for any other pod.
   */
  secondsLeft(uid: PodUid): number | undefined {
    const deadlineMs = this.#entries.get(uid)?.deadlineMs;
    if (deadlineMs === undefined) return undefined;
    // The remaining time is rounded to milliseconds first, so that a fraction of a millisecond does
    // not add a second.
    return Math.max(1, Math.ceil(Math.round(deadlineMs - this.#deps.clock.monotonicMs()) / 1_000));
  }

  /** Returns the crash back-offs of all pods. */
  backoffs(): readonly (readonly [string, BackoffState])[] {
    return [...this.#entries.values()].flatMap(({ entry }) => Object.entries(entry.restarts ?? {}));
  }

  /**
   * Returns the status with which a restored pod continues; undefined for a pod that starts from
   * scratch.
   */
  statusOf(uid: PodUid): StatusEntry | undefined {
    const { status, termination } = this.get(uid) ?? {};
    if (status !== undefined && isShutDown(status)) return undefined;
    // A pod whose termination did not finish was no longer desired, so its status is not used.
    return termination !== undefined && status?.phase === undefined ? undefined : status;
  }

  /** Records that a source has delivered the pod. Nothing is written before the pod is admitted. */
  observeSource(pod: Pod, life: 'continues' | 'restarts'): void {
    const { uid } = pod.metadata;
    const file = this.#entries.get(uid);
    if (file === undefined) this.#entries.set(uid, newFile(newEntry(pod), undefined));
    else
      file.entry = {
        ...(life === 'restarts' ? withoutStatus(file.entry) : file.entry),
        source: sourceNameOf(pod),
      };
  }

  /** Records the admission of the pod; writes only if that changes the entry. */
  async recordAdmission(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { termination: _over, status: before, ...entry } = this.get(uid) ?? {};
    const status = before?.startTime === now.startTime ? before : statusOfStaticPod(pod, now);
    const kept = status === undefined ? {} : { status };
    await this.#record(uid, { ...entry, ...newEntry(pod), boot: this.#boot, ...kept }, undefined);
  }

  /**
   * Records a published status; writes only what the next kubelet could not read from the runtime.
   */
  async recordStatus(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const { entry, deadlineMs } = this.#entries.get(uid) ?? {};
    // Whether and how the pod finished is recorded by `recordFinished` and `recordKilled`.
    if (entry?.status === undefined || entry.status.phase !== terminalPhaseOf(now)) return;
    const fresh = isChanged(pod, entry.status, now) ? statusOfStaticPod(pod, now) : undefined;
    if (fresh === undefined) return;
    const probed = fresh.phase === undefined ? probedFlags(pod, now) : {};
    const status = Object.keys(probed).length === 0 ? fresh : { ...fresh, probed };
    await this.#record(uid, { ...entry, status }, deadlineMs);
  }

  /**
   * Records that a static pod has finished, so that no later kubelet starts it again while it is
   * desired. The status of other pods is stored by the API server.
   */
  async recordFinished(pod: Pod, now: PodStatus): Promise<void> {
    const { uid } = pod.metadata;
    const status = statusOfStaticPod(pod, now);
    if (status === undefined) return;
    const file = this.#entries.get(uid);
    await this.#record(uid, { ...(file?.entry ?? newEntry(pod)), status }, file?.deadlineMs);
  }

  /**
   * Records the final status of a pod that this node killed, because the API server may receive it
   * only after a restart of the kubelet.
   */
  async recordKilled(pod: Pod, now: PodStatus): Promise<void> {
    const end = podEnd(now);
    if (isStaticPod(pod)) await this.recordFinished(pod, now);
    else if (end !== undefined) {
      const { uid } = pod.metadata;
      const file = this.#entries.get(uid);
      await this.#record(uid, { ...(file?.entry ?? newEntry(pod)), end }, file?.deadlineMs);
    }
  }

  /**
   * Records that the source has removed the pod, so that its status does not apply to a later pod
   * with the same UID.
   */
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

  /** StartContainer calls, of this or a previous kubelet process, that got no response. */
  readonly starts: StartCheckpoint = {
    recordStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, (entry) => ({ ...entry, startUnderWay: containerId })),
    clearStart: ({ metadata }, containerId) =>
      this.#change(metadata.uid, ({ startUnderWay, ...entry }) =>
        startUnderWay === undefined || startUnderWay === containerId ? entry : { ...entry, startUnderWay },
      ),
  };

  /** Access to the recorded PersistentVolumes of each pod. */
  readonly volumes: BoundVolumeRecords = {
    of: (uid) => this.get(uid)?.volumes ?? {},
    ofOtherPods: (uid) =>
      [...this.#entries].flatMap(([other, { entry }]) =>
        other === uid ? [] : Object.values(entry.volumes ?? {}),
      ),
    record: (pod, volumes) => {
      const file = this.#entries.get(pod.metadata.uid);
      return this.#record(pod.metadata.uid, { ...(file?.entry ?? newEntry(pod)), volumes }, file?.deadlineMs);
    },
    forget: async (uid) => {
      const { volumes } = this.get(uid) ?? {};
      if (volumes !== undefined) await this.#change(uid, ({ volumes: _gone, ...entry }) => entry);
    },
  };

  /** Records the crash back-off of all containers of the pod. */
  async recordBackoff(uid: PodUid, restarts: Iterable<readonly [string, BackoffState]>): Promise<void> {
    const all = Object.fromEntries(restarts);
    await this.#change(uid, (entry) => ({ ...entry, restarts: all }));
  }

  /**
   * Records the start of a termination; the deadline of a terminating pod can only be moved
   * earlier.
   */
  async recordTermination(pod: Pod, graceSeconds: number): Promise<void> {
    const { clock } = this.#deps;
    const file = this.#entries.get(pod.metadata.uid);
    const deadlineMs = clock.monotonicMs() + graceSeconds * 1_000;
    if (deadlineMs >= (file?.deadlineMs ?? Number.POSITIVE_INFINITY)) return;
    const termination = { sinceMs: clock.now(), graceSeconds };
    await this.#record(pod.metadata.uid, { ...(file?.entry ?? newEntry(pod)), termination }, deadlineMs);
  }

  /**
   * Writes the deadline again after a change of the wall clock, so that a later kubelet computes
   * the same deadline.
   */
  async refreshDeadline(uid: PodUid): Promise<void> {
    const { clock } = this.#deps;
    const file = this.#entries.get(uid);
    const termination = file?.entry.termination;
    if (file?.deadlineMs === undefined || termination === undefined) return;
    const leftMs = Math.max(0, file.deadlineMs - clock.monotonicMs());
    const drift = Math.abs(terminationMsLeft(termination, clock.now()) - Math.max(leftMs, minChangeMs));
    if (drift < minChangeMs) return;
    const sinceMs = Math.max(0, Math.round(clock.now() - (termination.graceSeconds * 1_000 - leftMs)));
    await this.#record(uid, { ...file.entry, termination: { ...termination, sinceMs } }, file.deadlineMs);
  }

  /**
   * Records that all containers of the pod have stopped. The entry of a pod that is no longer
   * desired is deleted with its directory soon.
   */
  async recordTerminated(uid: PodUid, fate: 'desired' | 'undesired'): Promise<void> {
    const file = this.#entries.get(uid);
    if (file === undefined) return;
    const { termination: _over, postStarts: _due, preStops: _begun, ...entry } = file.entry;
    file.entry = entry;
    file.deadlineMs = undefined;
    if (fate === 'desired' && file.written !== undefined) await this.#record(uid, entry, undefined);
  }

  /** Resolves when all changes so far are on disk, or after a time-out. */
  async flushed(): Promise<void> {
    const files = [...this.#entries.values()];
    await this.#waitForWrite(this.#deps.podsDir, Promise.all(files.map(({ writing }) => writing)));
  }

  /**
   * Records that the directory of the pod was removed with the checkpoint in it. A pod that is
   * desired again gets its checkpoint back.
   */
  directoryRemoved(uid: PodUid, fate: 'desired' | 'undesired'): void {
    const file = this.#entries.get(uid);
    if (file === undefined) return;
    file.written = undefined;
    if (fate === 'desired' && file.entry.boot !== '') void this.#record(uid, file.entry, file.deadlineMs);
  }

  /** Drops the entries of pods whose directory was removed. */
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

  /**
   * Waits for a write with a time-out, so that a disk that does not respond does not block the
   * caller.
   */
  async #waitForWrite(path: string, writing: Promise<unknown>): Promise<void> {
    const { clock, logger } = this.#deps;
    const patience = { clock, ms: writeTimeoutMs, what: 'write a pod checkpoint' };
    try {
      await withDeadline(patience, () => writing, new AbortController().signal);
    } catch (error) {
      logger.error('Failed to write pod checkpoint in time', error, { path });
    }
  }

  /** Writes the latest entry; entries that were replaced in the meantime are not written. */
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
      const bytes = await files.readEnd(path, maxFileBytes + 1);
      if (bytes === undefined) return;
      const entry = bytes.byteLength > maxFileBytes ? undefined : decodeEntry(bytes.toString('utf8'));
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

  /**
   * Restores a termination. If the clock was set back to before its start, the grace period starts
   * now, also for later kubelets.
   */
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

/**
 * Returns the status to store for a static pod; undefined for other pods, whose status the API
 * server stores.
 */
function statusOfStaticPod(pod: Pod, status: PodStatus): StatusEntry | undefined {
  return isStaticPod(pod) ? statusEntry(status) : undefined;
}

function terminalPhaseOf({ phase }: PodStatus): string | undefined {
  return isTerminalPhase(phase) ? phase : undefined;
}

/**
 * Whether the status of a running pod must be written: an exit, or a change of the started or ready
 * flag of a probed container.
 */
function isChanged(pod: Pod, recorded: StatusEntry, now: PodStatus): boolean {
  if (recorded.phase !== undefined) return !sameJson(recorded, statusEntry(now));
  if (!sameJson(containerEntries(recorded), containerEntries(now))) return true;
  return Object.entries(probedFlags(pod, now)).some(([id, flags]) => !sameJson(recorded.probed?.[id], flags));
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
