import type { IncomingMessage } from 'node:http';
import type { Container, ContainerStatus } from '../../kinds/index.ts';
import { type Clock, describeError, errnoOf, isKind, KubelingError } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  ephemeralContainersOf,
  initContainersOf,
  isTerminalPhase,
  restartsAfterExit,
} from '../../pods/index.ts';
import { containerStatusOf } from '../streams/choose-pod.ts';
import type { KubeletClient } from '../streams/kubelet-client.ts';
import { LogLineReader, type LogPosition } from './log-line-reader.ts';
import type { LogOutput } from './output.ts';

export interface FollowDeps {
  readonly clock: Clock;
  readonly find: FindKubelet;
  readonly output: LogOutput;
  /** Prints messages for the user on standard error. */
  warn(text: string): void;
}

const pollMs = 250;
/** The maximum delay between retries of a log that cannot be read. */
const longestPauseMs = 10_000;
const reportAfter = 5;
/** How long the kubelet may be unavailable, as during a restart, before the command gives up. */
const idleReportMs = 60_000;
/**
 * After a lost connection, how long a pod that is missing in the responses does not count as
 * deleted: a restarted kubelet may not have read all its pods yet.
 */
const unknownForMs = 10_000;
/** How long a container status from the kubelet may be stale. */
const staleForMs = 3_000;
const newline = Uint8Array.of(0x0a);

/**
 * Prints the log of a container, including its restarts, until its pod is deleted. After a
 * reconnection to the kubelet it continues at the last position: nothing is printed twice and
 * nothing is left out.
 *
 *   start ─> reading
 *   reading ─connection broke─> reading, from the last position
 *   reading ─log ended─> waiting for the next instance ─> reading
 */
export class ContainerFollower {
  readonly #deps: FollowDeps;
  readonly #target: LogTarget;
  readonly #request: LogRequest;
  #progress: Progress = { kind: 'begun' };
  /**
   * Line and time limits apply to the first instance only, because all output of later instances is
   * new.
   */
  #isFirst = true;
  #position: LogPosition | undefined;
  #left: number;
  #lostAt: number | undefined;
  #unsureSince: number | undefined;
  #failures = 0;
  #lastByte = 0x0a;

  constructor(deps: FollowDeps, target: LogTarget, request: LogRequest) {
    this.#deps = deps;
    this.#target = target;
    this.#request = request;
    this.#left = request.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  async run(signal: AbortSignal): Promise<void> {
    let pod: Pod | undefined = this.#target.pod;
    while (pod !== undefined && this.#left > 0) {
      const next = nextInstance(pod, this.#target.container, this.#progress);
      if (next.kind === 'over') return;
      if (next.kind !== 'doubt') this.#unsureSince = undefined;
      if (next.kind === 'read') await this.#read(next.id, signal);
      else if (next.kind === 'doubt') await this.#recheck(signal);
      else await this.#wait(signal);
      if (this.#left > 0) pod = await this.#check(signal);
    }
  }

  /**
   * Handles a log that ended although the status shows the instance as running: waits for a newer
   * status, and after a few seconds reads the log further, because a kubelet that is shutting down
   * also ends the response.
   */
  async #recheck(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    this.#unsureSince ??= clock.monotonicMs();
    const isLong = clock.monotonicMs() - this.#unsureSince > staleForMs;
    if (isLong && this.#progress.kind === 'behind')
      this.#progress = { kind: 'inside', id: this.#progress.id };
    else await clock.sleep(pollMs, signal);
  }

  /**
   * Waits for the next instance. Before the first instance, prints the kubelet's message about why
   * there is no log.
   */
  async #wait(signal: AbortSignal): Promise<void> {
    if (this.#progress.kind === 'begun') (await openLog(this.#deps.find, this.#target, {}, signal)).destroy();
    await this.#deps.clock.sleep(pollMs, signal);
  }

  async #read(id: string, signal: AbortSignal): Promise<void> {
    const isAgain = this.#progress.kind === 'inside' && this.#progress.id === id;
    if (!isAgain) this.#position = undefined;
    const isNew = this.#progress.kind === 'begun';
    this.#progress = { kind: 'inside', id };
    try {
      await this.#print(id, signal);
      this.#failures = 0;
      if (this.#left > 0) this.#progress = { kind: 'behind', id };
      this.#isFirst = false;
    } catch (error) {
      signal.throwIfAborted();
      if (isLoss(error)) this.#lostAt ??= this.#deps.clock.monotonicMs();
      else if (isNew || !isRefusal(error)) throw error;
      await this.#backOff(error, signal);
    }
  }

  async #backOff(error: unknown, signal: AbortSignal): Promise<void> {
    this.#failures++;
    if (this.#failures === reportAfter) {
      const { container } = this.#target;
      this.#deps.warn(`Cannot read more of the log of ${container}, retrying: ${describeError(error)}`);
    }
    await this.#deps.clock.sleep(Math.min(pollMs * 2 ** (this.#failures - 1), longestPauseMs), signal);
  }

  async #print(id: string, signal: AbortSignal): Promise<void> {
    const position = (await this.#hasPosition(id, signal)) ? this.#position : undefined;
    const reader = new LogLineReader(this.#request.timestamps, position);
    const isBeginning = this.#isFirst && this.#position === undefined;
    const { tailLines, sinceTime } = this.#request;
    const query = {
      instance: id,
      follow: 'true',
      timestamps: 'true',
      ...(isBeginning ? { tailLines, sinceTime } : {}),
    };
    const response = await openLog(this.#deps.find, this.#target, query, signal);
    if (position === undefined)
      await this.#emit(this.#lastByte === 0x0a ? new Uint8Array(0) : newline, signal);
    for await (const chunk of response) {
      this.#failures = 0;
      await this.#emit(reader.read(chunk), signal);
      this.#position = reader.position;
      if (this.#left <= 0) return;
    }
  }

  /** Whether the log still contains the last position; a rotation may have removed it. */
  async #hasPosition(id: string, signal: AbortSignal): Promise<boolean> {
    if (this.#position === undefined) return false;
    const reader = new LogLineReader('hidden', this.#position);
    const response = await openLog(
      this.#deps.find,
      this.#target,
      { instance: id, timestamps: 'true' },
      signal,
    );
    for await (const chunk of response) {
      reader.read(chunk);
      if (reader.hasCaughtUp) return true;
    }
    return reader.hasCaughtUp;
  }

  async #emit(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const piece = bytes.subarray(0, this.#left);
    if (piece.length === 0) return;
    this.#left -= piece.length;
    this.#lastByte = piece.at(-1) ?? this.#lastByte;
    await this.#deps.output.write(piece, signal);
  }

  /** Reads the pod from the kubelet; undefined when it is deleted. */
  async #check(signal: AbortSignal): Promise<Pod | undefined> {
    const { clock, find } = this.#deps;
    const { uid } = this.#target.pod.metadata;
    for (;;) {
      try {
        const pod = (await (await find()).pods(signal)).find(({ metadata }) => metadata.uid === uid);
        if (pod !== undefined) this.#lostAt = undefined;
        if (pod !== undefined || !this.#isLostFor('less', unknownForMs)) return pod;
      } catch (error) {
        signal.throwIfAborted();
        if (!isLoss(error) || this.#isLostFor('more', idleReportMs)) throw error;
        this.#lostAt ??= clock.monotonicMs();
      }
      await clock.sleep(pollMs, signal);
    }
  }

  #isLostFor(how: 'more' | 'less', ms: number): boolean {
    if (this.#lostAt === undefined) return false;
    const isMore = this.#deps.clock.monotonicMs() - this.#lostAt > ms;
    return how === 'more' ? isMore : !isMore;
  }
}

/** Whether the connection broke or could not be established. */
function isLoss(error: unknown): boolean {
  if (error instanceof KubelingError) return isKind(error, 'Unavailable');
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(errnoOf(error) ?? '');
}

function isRefusal(error: unknown): boolean {
  return error instanceof KubelingError && error.code === 'LOGS_UNAVAILABLE';
}

/** The log options that the user has set. */
export interface LogRequest {
  readonly tailLines?: number | undefined;
  /** The start time in the format of the kubelet API. */
  readonly sinceTime?: string | undefined;
  readonly timestamps: 'shown' | 'hidden';
  readonly limitBytes?: number | undefined;
}

export interface LogTarget {
  readonly pod: Pod;
  readonly container: string;
}

/**
 * Finds the kubelet; called for each request, because a restarted kubelet may have another port and
 * token.
 */
export type FindKubelet = () => Promise<KubeletClient>;

/**
 * Requests a log; rejects with LOGS_UNAVAILABLE and the kubelet's message if it is not available.
 */
export async function openLog(
  find: FindKubelet,
  { pod, container }: LogTarget,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const parts = [pod.metadata.namespace, pod.metadata.name, container].map(encodeURIComponent);
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, `${value}`]],
  );
  const path = `/containerLogs/${parts.join('/')}?${new URLSearchParams(given)}`;
  const response = await (await find()).read(path, signal);
  if (response.statusCode === 200) return response;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  throw new KubelingError('LOGS_UNAVAILABLE', messageOf(Buffer.concat(chunks).toString()));
}

function messageOf(body: string): string {
  try {
    const { message }: { readonly message?: unknown } = JSON.parse(body);
    return String(message);
  } catch {
    return body.trim();
  }
}

export function logQueryOf({ tailLines, sinceTime, limitBytes, timestamps }: LogRequest) {
  return { tailLines, sinceTime, limitBytes, timestamps: String(timestamps === 'shown') };
}

/** Which instance of a container was read last, by its ID, and how far. */
export type Progress =
  | { readonly kind: 'begun' }
  /** The log of this instance was read partly. */
  | { readonly kind: 'inside'; readonly id: string }
  /** The log of this instance was read completely. */
  | { readonly kind: 'behind'; readonly id: string };

export type NextInstance =
  | { readonly kind: 'read'; readonly id: string }
  | { readonly kind: 'wait' }
  /**
   * The status shows an instance as running whose log was read to its end: the status is stale, or
   * the kubelet ended the response before the log ended.
   */
  | { readonly kind: 'doubt' }
  /** No further instance of the container will start. */
  | { readonly kind: 'over' };

/** Decides which instance of a container to read next, so that no existing instance is skipped. */
export function nextInstance(pod: Pod, name: string, progress: Progress): NextInstance {
  const status = containerStatusOf(pod, name);
  const last = idOf(status?.lastState?.terminated?.containerID);
  const newest = newestId(status);
  if (progress.kind === 'begun') return read(newest ?? last) ?? { kind: 'wait' };
  const isKnown = progress.id === last || progress.id === newest;
  if (progress.kind === 'inside' && isKnown) return { kind: 'read', id: progress.id };
  if (progress.id === newest && status?.state?.running !== undefined && !isTerminalPhase(pod.status.phase))
    return { kind: 'doubt' };
  if (progress.id === newest) return mayRestart(pod, name, status) ? { kind: 'wait' } : { kind: 'over' };
  // If the instance that was read last no longer exists, both instances in the status are newer, so
  // the older of the two is read next.
  const next = progress.id === last ? read(newest) : (read(last) ?? read(newest));
  if (next !== undefined) return next;
  return isTerminalPhase(pod.status.phase) ? { kind: 'over' } : { kind: 'wait' };
}

function newestId(status: ContainerStatus | undefined): string | undefined {
  const { running, terminated } = status?.state ?? {};
  return idOf(running === undefined ? terminated?.containerID : status?.containerID);
}

/** Whether another instance may start after the container exited. */
function mayRestart(pod: Pod, name: string, status: ContainerStatus | undefined): boolean {
  if (isTerminalPhase(pod.status.phase)) return false;
  const ended = status?.state?.terminated;
  if (ended === undefined) return true;
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  const container = containersOf(pod).find((each) => each.name === name);
  if (container === undefined || ephemeralContainersOf(pod).some((each) => each.name === name)) return false;
  const isPlainInit = initContainersOf(pod).includes(container) && container.restartPolicy !== 'Always';
  return isPlainInit
    ? ended.exitCode !== 0 && pod.spec.restartPolicy !== 'Never'
    : restartsAfterExit(pod, container, ended.exitCode ?? 0);
}

/**
 * Returns the containers of a pod in start order: init containers, containers, ephemeral
 * containers.
 */
export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

function idOf(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function read(id: string | undefined): NextInstance | undefined {
  return id === undefined ? undefined : { kind: 'read', id };
}
