import type { BackoffState } from '../lib/index.ts';
import type { PodSource } from '../pods/index.ts';
import { type BoundVolume, isBoundVolume } from '../volumes/index.ts';
import { isPodEnd, type PodEnd } from './pod-end.ts';
import { isStatusEntry, type StatusEntry } from './status-entry.ts';

/** How long a pod was given to end, and since when. */
export interface TerminationEntry {
  /** Wall time: nothing else means the same to the next process. */
  readonly sinceMs: number;
  readonly graceSeconds: number;
}

/** What a kubelet leaves to the next one about a pod, beyond what the runtime and the sources can tell. */
export interface CheckpointEntry {
  readonly source: PodSource;
  readonly name: string;
  readonly namespace: string;
  /** The boot of the machine in which the pod was last let run here. */
  readonly boot: string;
  /** The sandbox in which all init containers have done their work. */
  readonly initializedSandbox?: string;
  /** The container whose start was asked for, while the runtime has not said how it went. */
  readonly startUnderWay?: string;
  /** The containers whose postStart hook has not ended. */
  readonly postStarts?: readonly string[];
  /** The containers whose preStop hook was begun, with the time they have to end, since it began. */
  readonly preStops?: Readonly<Record<string, TerminationEntry>>;
  /** There while the pod is being stopped. */
  readonly termination?: TerminationEntry;
  /** The crash back-off of its containers, by the keys the back-off gives them. */
  readonly restarts?: Readonly<Record<string, BackoffState>>;
  /** The PersistentVolumes it was given, by the names it has for them; none when left out. */
  readonly volumes?: Readonly<Record<string, BoundVolume>>;
  /** Of a pod of the API that this node has ended, such as an evicted one. */
  readonly end?: PodEnd;
  /** Of a static pod, since it began and once more when it has ended for good. */
  readonly status?: StatusEntry;
}

const version = 1;

export function encodeEntry(notes: CheckpointEntry): string {
  return `${JSON.stringify({ version, ...notes })}\n`;
}

/** undefined for anything that is not what `encodeNotes` makes: half of notes would be worse than none. */
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

/** Earlier kubelets noted one container, under a name of its own. */
function postStartsIn({
  postStart,
  postStarts,
}: Readonly<Record<string, unknown>>): readonly string[] | 'bad' | undefined {
  const found = postStarts ?? (postStart === undefined ? undefined : [postStart]);
  if (found === undefined) return undefined;
  return Array.isArray(found) && found.every(isText) ? found : 'bad';
}

/**
 * What is left of the time to end. A clock that was set back gives nobody more than the whole, one that was set
 * forward leaves at least a second.
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
