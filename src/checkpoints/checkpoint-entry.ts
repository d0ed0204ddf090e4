import type { BackoffState } from '../lib/index.ts';
import type { PodSource } from '../pods/index.ts';
import { type BoundVolume, isBoundVolume } from '../volumes/index.ts';
import { isPodEnd, type PodEnd } from './pod-end.ts';
import { isStatusEntry, type StatusEntry } from './status-entry.ts';

/** The grace period of a termination and when it began. */
export interface TerminationEntry {
  /** Wall time, because the monotonic clock does not survive the process. */
  readonly sinceMs: number;
  readonly graceSeconds: number;
}

/**
 * The state of one pod that survives the kubelet process, beyond what the runtime and the sources
 * contain.
 */
export interface CheckpointEntry {
  readonly source: PodSource;
  readonly name: string;
  readonly namespace: string;
  /** The boot ID of the machine when the pod was last admitted. */
  readonly boot: string;
  /** The sandbox in which all init containers succeeded. */
  readonly initializedSandbox?: string;
  /** The container whose StartContainer call was sent and not answered. */
  readonly startUnderWay?: string;
  /** The containers whose postStart hook has not finished. */
  readonly postStarts?: readonly string[];
  /** The containers whose preStop hook was started, with the grace period since its start. */
  readonly preStops?: Readonly<Record<string, TerminationEntry>>;
  /** Set while the pod terminates. */
  readonly termination?: TerminationEntry;
  /** Crash back-off of its containers, by back-off key. */
  readonly restarts?: Readonly<Record<string, BackoffState>>;
  /** The PersistentVolumes of the pod by their names in the pod; none when left out. */
  readonly volumes?: Readonly<Record<string, BoundVolume>>;
  /** For an API pod killed by this node, such as an evicted one. */
  readonly end?: PodEnd;
  /** For a static pod: written after it started, and again when it has terminated. */
  readonly status?: StatusEntry;
}

const version = 1;

export function encodeEntry(entry: CheckpointEntry): string {
  return `${JSON.stringify({ version, ...entry })}\n`;
}

/**
 * Undefined for anything `encodeEntry` does not produce: a partial entry would be worse than none.
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

/** Earlier releases recorded one container, under the name `postStart`. */
function postStartsIn({
  postStart,
  postStarts,
}: Readonly<Record<string, unknown>>): readonly string[] | 'bad' | undefined {
  const found = postStarts ?? (postStart === undefined ? undefined : [postStart]);
  if (found === undefined) return undefined;
  return Array.isArray(found) && found.every(isText) ? found : 'bad';
}

/**
 * The remaining grace period: at most the full one when the clock was set back, at least a second
 * when it was set forward.
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
