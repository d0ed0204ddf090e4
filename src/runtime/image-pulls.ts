import type { AuthConfig, CriClient, Image, PodSandboxConfig } from '../cri/index.ts';
import {
  type Clock,
  cancelled,
  describeError,
  isKind,
  KubelingError,
  LinkedController,
  onAbort,
  SingleFlight,
} from '../lib/index.ts';
import type { MessageInit } from '../lib/protobuf/index.ts';

export interface PullLimits {
  /** How many pulls run at once; undefined for any number. */
  readonly maxParallel: number | undefined;
  /** How many pulls may begin in a second on average; 0 for any number. */
  readonly qps: number;
  readonly burst: number;
}

export interface PullRequest {
  readonly image: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly sandboxConfig: MessageInit<PodSandboxConfig> | undefined;
  /** Tried in this order; none for an anonymous pull. */
  readonly credentials: readonly MessageInit<AuthConfig>[];
  /** Whether the image was looked for right before, and not found. */
  readonly before: 'absent' | 'unknown';
}

export interface PulledImage {
  readonly imageRef: string;
  /** As the runtime has it now; undefined when it would not say. */
  readonly image: Image | undefined;
  /** Without the wait for its turn. */
  readonly ms: number;
}

/** How far a pull is: waiting for its turn, or under way. */
export type PullStanding =
  | { readonly kind: 'queued'; readonly place: number; readonly length: number }
  | { readonly kind: 'pulling' };

export interface PullDeps {
  readonly cri: Pick<CriClient, 'pullImage' | 'imageStatus'>;
  readonly clock: Clock;
  readonly limits: PullLimits;
}

/** How often a long pull is checked for having done its work without saying so. */
const checkMs = 60_000;

/** Brings images from registries: each once however many pods want it, and not too many at a time. */
export class ImagePulls {
  readonly #deps: PullDeps;
  readonly #flights = new SingleFlight<string, PulledImage>();
  readonly #slots: Slots;
  readonly #rate: Rate;

  constructor(deps: PullDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.limits.maxParallel ?? Number.POSITIVE_INFINITY);
    this.#rate = new Rate(deps.limits, deps.clock);
  }

  /** Pulls under way or waiting for their turn. */
  get size(): number {
    return this.#flights.size;
  }

  /** Rejects as the runtime refused, or with the signal's reason; the pull is dropped when nobody waits for it. */
  pull(request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    const key = keyOf(request);
    return this.#flights.run(key, (inner) => this.#pullInTurn(key, request, inner), signal);
  }

  /** How far a pull is that somebody waits for. */
  standing(request: PullRequest): PullStanding {
    const place = this.#slots.placeOf(keyOf(request));
    return place === undefined ? { kind: 'pulling' } : { kind: 'queued', place, length: this.#slots.waiting };
  }

  async #pullInTurn(key: string, request: PullRequest, signal: AbortSignal): Promise<PulledImage> {
    if (!this.#rate.take()) throw new KubelingError('IMAGE_PULL_RATE', 'pull QPS exceeded');
    using _slot = await this.#slots.take(key, signal);
    const startMs = this.#deps.clock.monotonicMs();
    const imageRef = await this.#pullUntilThere(request, signal);
    const ms = this.#deps.clock.monotonicMs() - startMs;
    return { imageRef, image: await this.#look(request, signal), ms };
  }

  /** A pull has no deadline, as nobody can tell how long one may take; so an answer that is lost must not be waited for. */
  async #pullUntilThere(request: PullRequest, signal: AbortSignal): Promise<string> {
    using controller = new LinkedController(signal);
    const answered = this.#pullWithAny(request, controller.signal);
    const seen = this.#appears(request, controller.signal);
    try {
      return await Promise.race([answered, seen]);
    } finally {
      controller.abort(cancelled('The pull is over'));
      await Promise.allSettled([answered, seen]);
    }
  }

  /** Settles with the image's id once one that was not there is; never for one of which nobody knows. */
  async #appears(request: PullRequest, signal: AbortSignal): Promise<string> {
    let before = request.before;
    for (;;) {
      await this.#deps.clock.sleep(checkMs, signal);
      const found = await this.#find(request, signal).catch(() => 'not-said' as const);
      signal.throwIfAborted();
      if (found === undefined) before = 'absent';
      else if (found !== 'not-said' && before === 'absent') return found.id;
    }
  }

  async #pullWithAny(request: PullRequest, signal: AbortSignal): Promise<string> {
    const { image, annotations, sandboxConfig, credentials } = request;
    const failures: unknown[] = [];
    for (const auth of credentials.length === 0 ? [undefined] : credentials) {
      try {
        const answer = await this.#deps.cri.pullImage(
          { image: { image, annotations }, auth, sandboxConfig },
          signal,
        );
        return answer.imageRef;
      } catch (error) {
        if (signal.aborted || isKind(error, 'Cancelled')) throw error;
        failures.push(error);
      }
    }
    throw failures.length === 1 ? failures[0] : severalFailures(failures);
  }

  /** Its size and user are wanted at once; not to know them is no reason to fail. */
  async #look(request: PullRequest, signal: AbortSignal): Promise<Image | undefined> {
    try {
      return await this.#find(request, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  async #find({ image, annotations }: PullRequest, signal: AbortSignal): Promise<Image | undefined> {
    return (await this.#deps.cri.imageStatus({ image: { image, annotations } }, signal)).image;
  }
}

/** Who has other credentials may be refused where somebody else is not. */
function keyOf({ image, credentials }: PullRequest): string {
  return JSON.stringify([image, credentials]);
}

function severalFailures(failures: readonly unknown[]): KubelingError {
  const texts = [...new Set(failures.map(describeError))];
  return new KubelingError('CRI_FAILED', texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`, {
    cause: failures[0],
  });
}

/** A number of places, handed on in the order they were asked for. */
class Slots {
  #free: number;
  readonly #line = new Map<string, () => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#line.size;
  }

  /** Counted from 1; undefined for who does not wait. */
  placeOf(who: string): number | undefined {
    const at = [...this.#line.keys()].indexOf(who);
    return at < 0 ? undefined : at + 1;
  }

  /** `who` has at most one place in the line. */
  async take(who: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(who, signal);
    return { [Symbol.dispose]: () => this.#giveBack() };
  }

  #wait(who: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#line.set(who, go);
      const link = onAbort(signal, (reason) => {
        this.#line.delete(who);
        reject(reason);
      });
    });
  }

  #giveBack(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [who, go] = next;
    this.#line.delete(who);
    go();
  }
}

/** A bucket that fills with `qps` a second up to `burst`. */
class Rate {
  readonly #limits: PullLimits;
  readonly #clock: Clock;
  #tokens: number;
  #lastMs: number;

  constructor(limits: PullLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = limits.burst;
    this.#lastMs = clock.monotonicMs();
  }

  take(): boolean {
    const { qps, burst } = this.#limits;
    if (qps <= 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#lastMs) / 1_000) * qps);
    this.#lastMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
