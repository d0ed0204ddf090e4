import type { BackoffState } from '../lib/index.ts';
import type { PodSource } from '../pods/index.ts';
import { type BoundVolume, isBoundVolume } from '../volumes/index.ts';
import { isPodEnd, type PodEnd } from './pod-end.ts';
import { isStatusEntry, type StatusEntry } from './status-entry.ts';

/** The start of a pod's termination and its grace period. */
export interface TerminationEntry {
  /** The start in wall time, because the monotonic clock does not survive the process. */
  readonly sinceMs: number;
  readonly graceSeconds: number;
}

/**
 * The state of one pod that must survive the kubelet process and is in neither the runtime nor the
 * pod sources.
 */
export interface CheckpointEntry {
  readonly source: PodSource;
  readonly name: string;
  readonly namespace: string;
  /** The boot ID of the machine at the last admission of the pod. */
  readonly boot: string;
  /** The ID of the sandbox in which all init containers succeeded. */
  readonly initializedSandbox?: string;
  /** The container for which StartContainer was called without a response so far. */
  readonly startUnderWay?: string;
  /** The containers whose postStart hook has not finished. */
  readonly postStarts?: readonly string[];
  /** The containers whose preStop hook was started: when, and with which grace period. */
  readonly preStops?: Readonly<Record<string, TerminationEntry>>;
  /** The termination of the pod; undefined while it is not terminating. */
  readonly termination?: TerminationEntry;
  /** The crash back-off of the pod's containers, by back-off key. */
  readonly restarts?: Readonly<Record<string, BackoffState>>;
  /** The PersistentVolumes of the pod by the volume names in the pod; undefined if it has none. */
  readonly volumes?: Readonly<Record<string, BoundVolume>>;
  /** The final status of an API pod that this node killed, for example by eviction. */
  readonly end?: PodEnd;
  /** The status of a static pod: written after its start, and again after its termination. */
  readonly status?: StatusEntry;
}

const version = 1;

export function encodeEntry(entry: CheckpointEntry): string {
  return `${JSON.stringify({ version, ...entry })}\n`;
}

/**
 * Parses an entry. Returns undefined if any known field is invalid, because a partial entry would be
 * worse than none.
 */
export function decodeEntry(text: string): CheckpointEntry | undefined {
  const value = parsed(text);
  if (!isRecord(value) || value['version'] !== version) return undefined;
  const { source, name, namespace, boot, initializedSandbox, startUnderWay, termination, restarts, status } =
    value;
  const { preStops, volumes, end } = value;
  const postStarts = postStartsIn(value);
  if (!isSource(source) || !isText(name) || !isText(namespace) || !isText(boot)) return undefined;
  if (initializedSandbox !== undefined && !isText(initializedSandbox)) return undefined;
  if (startUnderWay !== undefined && !isText(startUnderWay)) return undefined;
  if (postStarts === 'bad') return undefined;
  if (preStops !== undefined && !isPreStops(preStops)) return undefined;
  if (termination !== undefined && !isTermination(termination)) return undefined;
  if (restarts !== undefined && !isRestarts(restarts)) return undefined;
  if (volumes !== undefined && !isVolumes(volumes)) return undefined;
  if (end !== undefined && !isPodEnd(end)) return undefined;
  if (status !== undefined && !isStatusEntry(status)) return undefined;
  return {
    source,
    name,
    namespace,
    boot,
    ...(initializedSandbox !== undefined && { initializedSandbox }),
    ...(startUnderWay !== undefined && { startUnderWay }),
    ...(postStarts !== undefined && { postStarts }),
    ...(preStops !== undefined && { preStops }),
    ...(termination !== undefined && { termination }),
    ...(restarts !== undefined && { restarts }),
    ...(volumes !== undefined && { volumes }),
    ...(end !== undefined && { end }),
    ...(status !== undefined && { status }),
  };
}

/** Earlier releases recorded only one container, in the field `postStart`. */
function postStartsIn({
  postStart,
  postStarts,
}: Readonly<Record<string, unknown>>): readonly string[] | 'bad' | undefined {
  const found = postStarts ?? (postStart === undefined ? undefined : [postStart]);
  if (found === undefined) return undefined;
  return Array.isArray(found) && found.every(isText) ? found : 'bad';
}

/**
 * Returns the remaining grace period. After a change of the clock it is still at most the full
 * period and at least a second.
 */
export function terminationMsLeft({ sinceMs, graceSeconds }: TerminationEntry, nowMs: number): number {
  const wholeMs = graceSeconds * 1_000;
  return Math.max(1_000, Math.min(wholeMs, wholeMs - (nowMs - sinceMs)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isSource(value: unknown): value is PodSource {
  return value === 'file' || value === 'http' || value === 'api';
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTermination(value: unknown): value is TerminationEntry {
  return isRecord(value) && isCount(value['sinceMs']) && isCount(value['graceSeconds']);
}

function isPreStops(value: unknown): value is Readonly<Record<string, TerminationEntry>> {
  return isRecord(value) && Object.values(value).every(isTermination);
}

function isRestarts(value: unknown): value is Readonly<Record<string, BackoffState>> {
  return isRecord(value) && Object.values(value).every(isBackoffState);
}

function isVolumes(value: unknown): value is Readonly<Record<string, BoundVolume>> {
  return isRecord(value) && Object.values(value).every(isBoundVolume);
}

function isBackoffState(value: unknown): boolean {
  return (
    isRecord(value) && isCount(value['failures']) && isCount(value['delayMs']) && isCount(value['lastMs'])
  );
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
