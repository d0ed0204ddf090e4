import { type Clock, HintLatch, jitter, KubelingError, type Random } from '../lib/index.ts';
import { isReady } from './conditions.ts';
import type { NodeLog } from './node-log.ts';
import type { NodeStatusWriter } from './node-status-writer.ts';
import type { NodeView } from './node-view.ts';
import type { Registration } from './registration.ts';
import type { NodeSettings } from './settings.ts';

export interface StatusLoopDeps {
  readonly settings: NodeSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly view: NodeView;
  readonly writer: NodeStatusWriter;
  readonly registration: Registration;
  readonly log: NodeLog;
}

/** How long and how often a node that starts is looked at in a hurry. */
const expediteMs = 120_000;
const expediteStepMs = 100;
const afterFailureMs = 5_000;
const minIntervalMs = 500;

/**
 * The Node's life in the API:
 *
 *   register ──> hurry ──> look every 10 s ──┐
 *      ^        (until Ready)   ^            │ 404 for a minute
 *      └────────────────────────┴────────────┘
 */
export class StatusLoop {
  readonly #deps: StatusLoopDeps;
  readonly #hints: HintLatch;
  readonly #missingNode: MissingNode;

  constructor(deps: StatusLoopDeps) {
    this.#deps = deps;
    this.#hints = new HintLatch(deps.clock);
    this.#missingNode = new MissingNode(deps.clock);
  }

  /** Something about the node may have changed that others should know at once. Never blocks. */
  hint(): void {
    this.#hints.raise();
  }

  /** Ends only by the signal, with its reason, or with NODE_GONE where the settings say so. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, settings } = this.#deps;
    if (settings.register === 'self') await this.#register(signal);
    for (;;) {
      this.#hints.clear();
      await this.#check(signal);
      const untilNextMs = jitter(random, settings.updateFrequencyMs, 0.04);
      const pauseMs = Math.min(untilNextMs, this.#missingNode.untilDeletedMs());
      // Whatever hints every moment costs no more than this.
      await clock.sleep(Math.min(minIntervalMs, pauseMs), signal);
      await this.#hints.wait(Math.max(0, pauseMs - minIntervalMs), signal);
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    await this.#deps.registration.register(signal);
    this.#missingNode.clear();
    await this.#expedite(signal);
  }

  async #check(signal: AbortSignal): Promise<void> {
    if (this.#isOtherNode()) return await this.#register(signal);
    const outcome = await this.#deps.writer.pass(signal);
    if (outcome === 'absent') await this.#missing(signal);
    else if (outcome !== 'failed') this.#missingNode.clear();
  }

  /** Somebody deleted the Node and made it anew: it lacks what we give to a Node that was there before us. */
  #isOtherNode(): boolean {
    const { registration, view, settings } = this.#deps;
    const uid = view.current()?.metadata?.uid;
    return settings.register === 'self' && uid !== undefined && uid !== registration.uid;
  }

  async #missing(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#deps;
    const news = this.#missingNode.observe();
    const { name, recreation } = settings;
    if (news === 'first')
      log.warn('There is no Node object of this node', { node: name, afterDeletion: recreation });
    if (news !== 'verdict') return;
    if (recreation === 'exit') {
      throw new KubelingError('NODE_GONE', `Cannot go on as node ${name} was deleted`, {
        details: { node: name },
      });
    }
    if (recreation === 'stay' || settings.register === 'never') return;
    log.info('The node registers anew, as its Node object was deleted', { node: name });
    await this.#register(signal);
  }

  /** A node that becomes ready is needed now, not in ten seconds. Between the usual passes no call is made for it. */
  async #expedite(signal: AbortSignal): Promise<void> {
    const { clock, view, writer, settings, log } = this.#deps;
    const startMs = clock.monotonicMs();
    let passMs = startMs;
    while (clock.monotonicMs() < startMs + expediteMs) {
      const node = view.current();
      // Deleted meanwhile: the pass that follows finds out for sure.
      if (node === undefined || isReady(node)) return;
      if ((await writer.wouldBeReady(node, signal)) || clock.monotonicMs() >= passMs) {
        const outcome = await writer.pass(signal);
        passMs = clock.monotonicMs() + settings.updateFrequencyMs;
        // An API server in trouble is not helped by hurry.
        if (outcome === 'failed') await clock.sleep(afterFailureMs, signal);
      }
      await clock.sleep(expediteStepMs, signal);
    }
    log.warn('The node did not become ready in time after its start', { waitedMs: expediteMs });
  }
}

/** A Node that is missing for a moment may be under way; one that is missing for this long was deleted. */
const deletedAfterMs = 60_000;

/** For how long the Node has been missing. */
export class MissingNode {
  readonly #clock: Clock;
  #sinceMs: number | undefined;
  #isDecided = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The API server said that there is none. The verdict is given once, when it was so for long enough. */
  observe(): 'first' | 'again' | 'verdict' {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs;
      return 'first';
    }
    if (this.#isDecided || nowMs - this.#sinceMs < deletedAfterMs) return 'again';
    this.#isDecided = true;
    return 'verdict';
  }

  clear(): void {
    this.#sinceMs = undefined;
    this.#isDecided = false;
  }

  /** When to look again for the verdict to come in time; for ever when none is due. */
  untilDeletedMs(): number {
    if (this.#sinceMs === undefined || this.#isDecided) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#sinceMs + deletedAfterMs - this.#clock.monotonicMs());
  }
}
