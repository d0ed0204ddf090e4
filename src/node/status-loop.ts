import { type Clock, type HintLatch, jitter, KubelingError, type Random } from '../lib/index.ts';
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
  /** Raised to request an immediate check of the node status. */
  readonly hints: HintLatch;
}

/** The duration and interval of frequent checks while a node starts. */
const expediteMs = 120_000;
const expediteStepMs = 100;
const afterFailureMs = 5_000;
const minIntervalMs = 500;

/**
 * The life of the Node in the API:
 *
 *   register ──> expedite ──> check every 10 s ──┐
 *      ^       (until Ready)      ^              │ 404 for a minute
 *      └──────────────────────────┴──────────────┘
 */
export class StatusLoop {
  readonly #deps: StatusLoopDeps;
  readonly #missingNode: MissingNode;

  constructor(deps: StatusLoopDeps) {
    this.#deps = deps;
    this.#missingNode = new MissingNode(deps.clock);
  }

  /**
   * Runs until aborted; rejects with the signal's reason, or with NODE_GONE when the Node was
   * deleted and must not be recreated.
   */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, settings, hints } = this.#deps;
    if (settings.register === 'self') await this.#register(signal);
    for (;;) {
      hints.clear();
      await this.#check(signal);
      const untilNextMs = jitter(random, settings.updateFrequencyMs, 0.04);
      const pauseMs = Math.min(untilNextMs, this.#missingNode.untilDeletedMs());
      // The minimum interval of status checks that are requested besides the regular ones.
      await clock.sleep(Math.min(minIntervalMs, pauseMs), signal);
      await hints.wait(Math.max(0, pauseMs - minIntervalMs), signal);
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

  /** Whether another client recreated the Node, so that it must be adopted. */
  #isOtherNode(): boolean {
    const { registration, view, settings } = this.#deps;
    const uid = view.current()?.metadata?.uid;
    return settings.register === 'self' && uid !== undefined && uid !== registration.uid;
  }

  async #missing(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#deps;
    const change = this.#missingNode.observe();
    const { name, recreation } = settings;
    if (change === 'first') log.warn('Node object does not exist', { node: name, afterDeletion: recreation });
    if (change !== 'deleted') return;
    if (recreation === 'exit') {
      throw new KubelingError('NODE_GONE', `Cannot continue as node ${name}: its Node object was deleted`, {
        details: { node: name },
      });
    }
    if (recreation === 'stay' || settings.register === 'never') return;
    log.info('Registering node again after its Node object was deleted', { node: name });
    await this.#register(signal);
  }

  /**
   * A starting node becomes ready as soon as possible. Between the regular checks no request is
   * sent to the API server.
   */
  async #expedite(signal: AbortSignal): Promise<void> {
    const { clock, view, writer, settings, log } = this.#deps;
    const startMs = clock.monotonicMs();
    let intervalMs = startMs;
    while (clock.monotonicMs() < startMs + expediteMs) {
      const node = view.current();
      // The Node was deleted between checks: the next check confirms it.
      if (node === undefined || isReady(node)) return;
      if ((await writer.wouldBeReady(node, signal)) || clock.monotonicMs() >= intervalMs) {
        const outcome = await writer.pass(signal);
        intervalMs = clock.monotonicMs() + settings.updateFrequencyMs;
        // The update is retried at the next regular check, because fast retries do not help a
        // failing API server.
        if (outcome === 'failed') await clock.sleep(afterFailureMs, signal);
      }
      await clock.sleep(expediteStepMs, signal);
    }
    log.warn('Node did not become ready in time after its start', { waitedMs: expediteMs });
  }
}

/**
 * A Node that is missing for this long counts as deleted; the watch may miss it for a shorter time.
 */
const deletedAfterMs = 60_000;

/** Tracks how long the Node has been missing. */
class MissingNode {
  readonly #clock: Clock;
  #sinceMs: number | undefined;
  #isDecided = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Called when the API server has responded with 404. Returns 'deleted' once, when the Node has
   * been missing for so long that it counts as deleted.
   */
  observe(): 'first' | 'again' | 'deleted' {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs;
      return 'first';
    }
    if (this.#isDecided || nowMs - this.#sinceMs < deletedAfterMs) return 'again';
    this.#isDecided = true;
    return 'deleted';
  }

  clear(): void {
    this.#sinceMs = undefined;
    this.#isDecided = false;
  }

  /**
   * The time until the next check that can confirm the deletion of the Node; infinite when none is
   * due.
   */
  untilDeletedMs(): number {
    if (this.#sinceMs === undefined || this.#isDecided) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#sinceMs + deletedAfterMs - this.#clock.monotonicMs());
  }
}
