import type { CriClient } from '../../cri/index.ts';
import type { Container, ExecAction, HTTPGetAction, LifecycleHandler } from '../../kinds/index.ts';
import type { MetricRegistry } from '../../lib/index.ts';
import {
  type Clock,
  describeError,
  followRedirects,
  type HttpRequest,
  joinHostPort,
  KubelingError,
  type Logger,
  type SendHttp,
  withDeadline,
} from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { actionRequest, describePod, type Pod, type PodJournal } from '../../pods/index.ts';

export interface LifecycleHooksDeps {
  readonly cri: Pick<CriClient, 'execSync'>;
  readonly clock: Clock;
  readonly journal: PodJournal;
  readonly logger: Logger;
  readonly dial: SendHttp;
  /**
   * Returns the pod's current addresses, of which the first is used; rejects when they cannot be
   * determined.
   */
  readonly podIps: (pod: Pod, signal: AbortSignal) => Promise<readonly string[]>;
  /** The node's time limit for any hook; hooks are unlimited if undefined. */
  readonly limitMs?: number | undefined;
  readonly observer?: HookObserver | undefined;
}

const userAgent = 'kube-lifecycle/1.36';
/**
 * The maximum number of bytes that are read from the response to an httpGet hook; the response is
 * discarded.
 */
const bodyLimit = 10 * 1024;
/** The maximum length of command output in a log entry. */
const maxLoggedBytes = 4_096;

/**
 * Runs hooks in containers. Without the node's time limit, a hook runs until it ends or until the
 * signal is aborted because its container has exited or the grace period has expired.
 */
export class LifecycleHooks implements HookRunner {
  readonly #deps: LifecycleHooksDeps;
  readonly #observer: HookObserver;

  constructor(deps: LifecycleHooksDeps) {
    this.#deps = deps;
    this.#observer = deps.observer ?? unobservedHooks;
  }

  async run(hook: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void> {
    const { clock, limitMs: ms } = this.#deps;
    signal.throwIfAborted();
    const work = (inner: AbortSignal) => this.#runHandler(hook, target, inner);
    if (ms === undefined) await work(signal);
    else await withDeadline({ clock, ms, what: `run ${describeHook(hook)}` }, work, signal);
  }

  async #runHandler(hook: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void> {
    const { exec, httpGet, sleep } = hook;
    if (exec !== undefined) await this.#exec(exec, target, signal);
    else if (httpGet !== undefined) await this.#httpGet(httpGet, target, signal);
    else if (sleep !== undefined) await this.#sleep((sleep.seconds ?? 0) * 1_000, signal);
    else throw new KubelingError('HOOK_UNKNOWN', `Cannot run ${describeHook(hook)}: unsupported hook`);
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.clock.sleep(ms, signal);
    } catch (error) {
      this.#observer.sleepTerminatedEarly();
      throw error;
    }
  }

  async #exec({ command = [] }: ExecAction, target: HookTarget, signal: AbortSignal): Promise<void> {
    const request = { containerId: target.containerId, cmd: [...command], timeout: 0n };
    const { exitCode, stdout, stderr } = await this.#deps.cri.execSync(request, signal);
    if (exitCode === 0) return;
    // The output may hold secrets of the container, so it is only logged.
    this.#deps.logger.warn('Lifecycle hook command failed', {
      pod: describePod(target.pod),
      container: target.container.name,
      exitCode,
      output: Buffer.concat([stdout, stderr]).subarray(0, maxLoggedBytes).toString('utf8'),
    });
    throw new KubelingError('HOOK_FAILED', `${describeCommand(command)} exited with ${exitCode}`);
  }

  /** Any response to an httpGet hook counts as success. */
  async #httpGet(action: HTTPGetAction, target: HookTarget, signal: AbortSignal): Promise<void> {
    const host = action.host || (await this.#podIp(target.pod, signal));
    const request = actionRequest(action, target.container, host, userAgent);
    try {
      await this.#request(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isPlainHttpResponse(error)) throw error;
      await this.#retryWithoutTls(request, target.pod, error, signal);
    }
  }

  async #request(request: HttpRequest, signal: AbortSignal): Promise<void> {
    await followRedirects(this.#deps.dial, request, bodyLimit, signal);
  }

  /** Credentials in the headers of an https hook are not sent over HTTP. */
  async #retryWithoutTls(
    request: HttpRequest,
    pod: Pod,
    refusal: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    const headers = request.headers.filter(([name]) => name.toLowerCase() !== 'authorization');
    const place = joinHostPort(request.host, request.port);
    try {
      await this.#request({ ...request, scheme: 'http', headers }, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.logger.warn('Lifecycle hook failed over HTTP too', {
        pod: describePod(pod),
        host: place,
        because: describeError(error),
      });
      throw refusal;
    }
    this.#observer.httpFallback();
    const message = `request to HTTPS lifecycle hook ${place} got HTTP response, retry with HTTP succeeded`;
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'LifecycleHTTPFallback', message });
  }

  async #podIp(pod: Pod, signal: AbortSignal): Promise<string> {
    const [ip] = await this.#deps.podIps(pod, signal);
    if (ip !== undefined) return ip;
    throw new KubelingError('HOOK_NO_ADDRESS', `Cannot request ${describePod(pod)} as it has no address`);
  }
}

/** Describes a hook for events and logs, without the command arguments. */
function describeHook({ exec, httpGet, sleep, tcpSocket }: LifecycleHandler): string {
  if (exec !== undefined) return `the exec hook, ${describeCommand(exec.command ?? [])}`;
  if (httpGet !== undefined) return `the httpGet hook ${httpGet.path ?? ''}`;
  if (sleep !== undefined) return `the sleep hook of ${sleep.seconds ?? 0} s`;
  return tcpSocket === undefined ? 'an empty hook' : 'a tcpSocket hook';
}

/** Describes a command without its arguments, which may be secrets. */
function describeCommand([program = '', ...words]: readonly string[]): string {
  return `command '${program}' with ${words.length} argument${words.length === 1 ? '' : 's'}`;
}

function isPlainHttpResponse(error: unknown): boolean {
  return error instanceof KubelingError && error.code === 'HTTP_NOT_TLS';
}

/** Counts the outcomes of lifecycle hooks. Never throws. */
export interface HookObserver {
  /**
   * Called when a server did not answer an https hook over TLS and the hook then succeeded over
   * plain HTTP.
   */
  httpFallback(): void;
  /** Called when a sleep hook was cancelled before its end. */
  sleepTerminatedEarly(): void;
}

const unobservedHooks: HookObserver = { httpFallback() {}, sleepTerminatedEarly() {} };

/** Registers the metrics of the Go kubelet for hooks. */
export function hookMetrics(registry: MetricRegistry): HookObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const fallbacks = counter(
    'kubelet_lifecycle_handler_http_fallbacks_total',
    'Lifecycle hooks over HTTPS that were answered over HTTP.',
  );
  const sleeps = counter(
    'kubelet_sleep_action_terminated_early_total',
    'Sleep hooks that were cancelled before their end.',
  );
  return { httpFallback: () => fallbacks.inc(), sleepTerminatedEarly: () => sleeps.inc() };
}

export interface HookTarget {
  readonly pod: Pod;
  /**
   * The name and ports of the container that has the hook, from the pod's spec or restored from the
   * runtime's annotations.
   */
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly containerId: string;
}

/**
 * Runs lifecycle hooks. Rejects when a hook fails; the error may contain output of the container,
 * so it must not be used in events.
 */
export interface HookRunner {
  run(hook: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void>;
}

/** A preStop hook that a previous kubelet has started, with its progress. */
export interface StartedPreStop {
  /** The time since the preStop hook started. */
  readonly usedMs: number;
  /** The time left until the container must be stopped; at least a second. */
  readonly msLeft: number;
}

/**
 * Persists the progress of container hooks. A change is effective immediately; the promise resolves
 * when the change was written or the write has failed.
 */
export interface HookCheckpoint {
  /** Records a postStart hook before StartContainer of its container. */
  recordPostStart(pod: Pod, containerId: string): Promise<void>;
  /** Clears a postStart hook after it has ended and its failure was handled. */
  clearPostStart(pod: Pod, containerId: string): Promise<void>;
  /**
   * Returns the containers with an unfinished postStart hook, in start order. There can be several
   * containers: when the outcome of a start is unknown, the hook stays pending while the next
   * container starts.
   */
  pendingPostStarts(uid: PodUid): readonly string[];
  recordPreStop(pod: Pod, containerId: string, graceSeconds: number): Promise<void>;
  /** Returns the started preStop hook of the container; undefined when none was started. */
  startedPreStop(uid: PodUid, containerId: string): StartedPreStop | undefined;
  /** Clears the records of all hooks of a stopped container. */
  containerStopped(pod: Pod, containerId: string): Promise<void>;
}

export const noHookCheckpoint: HookCheckpoint = {
  recordPostStart: async () => {},
  clearPostStart: async () => {},
  pendingPostStarts: () => [],
  recordPreStop: async () => {},
  startedPreStop: () => undefined,
  containerStopped: async () => {},
};
