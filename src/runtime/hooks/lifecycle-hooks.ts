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
  /** The addresses the pod has now, the first of which is asked; rejects when nobody can tell. */
  readonly podIps: (pod: Pod, signal: AbortSignal) => Promise<readonly string[]>;
  /** How long any hook of this node may take; as long as it wants unless given. */
  readonly limitMs?: number | undefined;
  readonly observer?: HookObserver | undefined;
}

const userAgent = 'kube-lifecycle/1.36';
/** Nobody reads what a hook answers; so much of it is taken from the wire. */
const bodyLimit = 10 * 1024;
/** More of what a command says is of no use in a log. */
const maxLoggedBytes = 4_096;

/**
 * Runs hooks for real. A hook has no time limit of its own: it runs until it ends, the signal is aborted because its
 * container or the time of its container ends, or the limit of the node is reached.
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
    else throw new KubelingError('HOOK_UNKNOWN', `Cannot run ${describeHook(hook)}: there is no such hook`);
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
    // What it said may hold secrets of the container: it goes into the log and nowhere else.
    this.#deps.logger.warn('The command of a hook failed', {
      pod: describePod(target.pod),
      container: target.container.name,
      exitCode,
      output: Buffer.concat([stdout, stderr]).subarray(0, maxLoggedBytes).toString('utf8'),
    });
    throw new KubelingError('HOOK_FAILED', `${describeCommand(command)} exited with ${exitCode}`);
  }

  /** Whatever is answered is good; it is only to be told. */
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

  /** Credentials that were meant for an encrypted connection do not go over one that is not. */
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
      this.#deps.logger.warn('A hook got no answer without TLS either', {
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
    throw new KubelingError('HOOK_NO_ADDRESS', `Cannot ask ${describePod(pod)} as it has no address`);
  }
}

/** As its kind and what the pod's spec says of it; for people. */
export function describeHook({ exec, httpGet, sleep, tcpSocket }: LifecycleHandler): string {
  if (exec !== undefined) return `the exec hook, ${describeCommand(exec.command ?? [])}`;
  if (httpGet !== undefined) return `the httpGet hook ${httpGet.path ?? ''}`;
  if (sleep !== undefined) return `the sleep hook of ${sleep.seconds ?? 0} s`;
  return tcpSocket === undefined ? 'an empty hook' : 'a tcpSocket hook';
}

/** Its arguments may be secrets, and what is told of hooks is read by others. */
function describeCommand([program = '', ...words]: readonly string[]): string {
  return `command '${program}' with ${words.length} argument${words.length === 1 ? '' : 's'}`;
}

function isPlainHttpResponse(error: unknown): boolean {
  return error instanceof KubelingError && error.code === 'HTTP_NOT_TLS';
}

/** Told what became of hooks, to be counted. Never throws. */
export interface HookObserver {
  /** A hook that asked with TLS got its answer without. */
  httpFallback(): void;
  /** A sleep was given up before its time. */
  sleepTerminatedEarly(): void;
}

export const unobservedHooks: HookObserver = { httpFallback() {}, sleepTerminatedEarly() {} };

/** Make one for a registry; the names are those dashboards know. */
export function hookMetrics(registry: MetricRegistry): HookObserver {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({});
  const fallbacks = counter(
    'kubelet_lifecycle_handler_http_fallbacks_total',
    'Hooks that asked with TLS and got their answer without.',
  );
  const sleeps = counter(
    'kubelet_sleep_action_terminated_early_total',
    'Sleep hooks that were given up before their time.',
  );
  return { httpFallback: () => fallbacks.inc(), sleepTerminatedEarly: () => sleeps.inc() };
}

export interface HookTarget {
  readonly pod: Pod;
  /** As the pod's spec has it, or as much as the runtime remembers of it. */
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly containerId: string;
}

/**
 * Runs the hooks of containers. Rejects when the hook failed; the message may hold output of the container and is
 * kept out of events.
 */
export interface HookRunner {
  run(hook: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void>;
}

/** Takes every hook for done. */
export const noHooks: HookRunner = { run: async () => {} };

/** A preStop hook that an earlier kubelet has begun. */
export interface StartedPreStop {
  /** Since it began. */
  readonly usedMs: number;
  /** Until the container must have ended; at least a second. */
  readonly msLeft: number;
}

/**
 * Keeps across kubelets how far the hooks of containers have come. What is told holds at once; the answer settles when
 * it is kept, or cannot be for now.
 */
export interface HookCheckpoint {
  /** The container is about to start, and its postStart hook to run. */
  recordPostStart(pod: Pod, containerId: string): Promise<void>;
  /** The hook has ended, and what follows from that is done. */
  clearPostStart(pod: Pod, containerId: string): Promise<void>;
  /**
   * The containers whose postStart hook has not ended, in the order they were started. Containers start one at a time,
   * but of a start nobody knows the outcome of the hook stays due while the next one starts.
   */
  pendingPostStarts(uid: PodUid): readonly string[];
  recordPreStop(pod: Pod, containerId: string, graceSeconds: number): Promise<void>;
  /** undefined when no preStop hook of the container was ever begun. */
  startedPreStop(uid: PodUid, containerId: string): StartedPreStop | undefined;
  /** The container has ended: nobody asks for its hooks any more. */
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
