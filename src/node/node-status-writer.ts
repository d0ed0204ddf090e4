import {
  type ApiClient,
  apiResources,
  isApiCode,
  nodeStatusPatch,
  type ObjectRef,
  type Patch,
  type PatchSchema,
} from '../api/index.ts';
import type { Node, NodeCondition } from '../kinds/index.ts';
import { backoffDelayMs, type Clock, type Random } from '../lib/index.ts';
import { sameJson } from '../pods/index.ts';
import { type ComputedNode, computeNode } from './compute-node.ts';
import { isReady, statusEvent } from './conditions.ts';
import type { HeartbeatConnections, NodeRecorder, NodeVolumes } from './inputs.ts';
import type { FactReader, NodeFacts, RuntimeQuery } from './node-facts.ts';
import type { NodeLog } from './node-log.ts';
import type { NodeView } from './node-view.ts';
import type { PodCidrs } from './pod-cidrs.ts';
import type { NodeSettings } from './settings.ts';

export interface NodeStatusWriterDeps {
  readonly api: Pick<ApiClient, 'get' | 'patch'>;
  readonly settings: NodeSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly view: NodeView;
  readonly facts: FactReader;
  readonly schema: PatchSchema;
  readonly recorder: NodeRecorder;
  readonly connections: HeartbeatConnections;
  readonly cidrs: PodCidrs;
  readonly log: NodeLog;
  readonly volumes?: NodeVolumes | undefined;
}

export type PassOutcome = 'reported' | 'nothing-new' | 'absent' | 'failed';

const mostTries = 5;
const retryPolicy = { baseMs: 100, maxMs: 1_000 };

/** Writes the status of the Node to the API server. Calls must not overlap. */
export class NodeStatusWriter {
  readonly #deps: NodeStatusWriterDeps;
  readonly #timer: ReportTimer;
  #unschedulable = false;
  /**
   * An older API server drops unknown fields; the writer stops sending the fields it has dropped.
   */
  #last: { readonly sent: Node; readonly got: Node } | undefined;

  constructor(deps: NodeStatusWriterDeps) {
    this.#deps = deps;
    this.#timer = new ReportTimer(deps.settings.reportFrequencyMs, deps.clock, deps.random);
  }

  compute(before: Node, facts: NodeFacts, extended: 'kept' | 'zeroed' = 'kept'): ComputedNode {
    const { settings, clock, log } = this.#deps;
    const computed = computeNode(before, { settings, facts, now: clock.now(), extended });
    for (const problem of computed.problems) log.problem('determine the addresses of the node', problem);
    if (computed.problems.length === 0) log.recovered('determine the addresses of the node');
    return computed;
  }

  isChanged(before: Node, after: Node): boolean {
    if (!isNodeChanged(before, after)) return false;
    return (
      this.#last === undefined ||
      isNodeChanged(this.#last.sent, after) ||
      isNodeChanged(this.#last.got, before)
    );
  }

  /** The facts of the node; undefined after an unexpected failure, which is logged. */
  async #read(about: RuntimeQuery, signal: AbortSignal): Promise<NodeFacts | undefined> {
    const { facts, log } = this.#deps;
    const what = 'read the state of the node';
    try {
      const known = await facts.read(about, signal);
      log.recovered(what);
      return known;
    } catch (error) {
      signal.throwIfAborted();
      log.problem(what, error);
      return undefined;
    }
  }

  /**
   * Whether a status update would make the node ready. Checks the runtime, and sends no request to
   * the API server.
   */
  async wouldBeReady(node: Node, signal: AbortSignal): Promise<boolean> {
    // Without pod CIDRs a runtime may have no network for pods.
    await this.#deps.cidrs.apply(node.spec?.podCIDRs ?? [], signal);
    const facts = await this.#read('query-runtime', signal);
    return facts !== undefined && isReady(this.compute(node, facts).node);
  }

  /** Reads the facts once, and writes the status if it has changed. Rejects only when aborted. */
  async pass(signal: AbortSignal): Promise<PassOutcome> {
    const facts = await this.#read('last-result', signal);
    if (facts === undefined) return 'failed';
    for (let attempt = 0; attempt < mostTries; attempt++) {
      try {
        const outcome = await this.#try(attempt === 0 ? 'cached' : 'fetched', facts, signal);
        this.#deps.log.recovered('update the status of the node');
        return outcome;
      } catch (error) {
        await this.#failed(error, attempt, signal);
      }
    }
    return 'failed';
  }

  async #try(base: 'cached' | 'fetched', facts: NodeFacts, signal: AbortSignal): Promise<PassOutcome> {
    const before = await this.#base(base, signal);
    if (before === undefined) return 'absent';
    this.#recordSchedulable(before);
    await this.#deps.cidrs.apply(before.spec?.podCIDRs ?? [], signal);
    const computed = this.compute(before, facts);
    const isChanged = this.isChanged(before, computed.node);
    if (!isChanged && !this.#timer.isDue()) {
      this.#deps.volumes?.reported(before.status?.volumesInUse ?? []);
      return 'nothing-new';
    }
    const after = await this.commit(before, computed, signal);
    return after === undefined ? 'absent' : 'reported';
  }

  /**
   * Patches the Node and then publishes the events of the change; undefined when the Node was
   * deleted.
   */
  async commit(before: Node, { node, events }: ComputedNode, signal: AbortSignal): Promise<Node | undefined> {
    const { api, schema, recorder } = this.#deps;
    const isChanged = this.isChanged(before, node);
    const patch = nodeStatusPatch(schema, before, node);
    const response = patch === undefined ? before : await this.#patch(api, before, patch, signal);
    if (response === undefined) return undefined;
    this.#recordWrite(node, response, isChanged ? 'changed' : 'due');
    for (const event of events) recorder.event(event);
    return response;
  }

  /** Records the creation of the Node with its complete status, which needs no update. */
  created(response: Node, { node, events }: ComputedNode): void {
    this.#recordWrite(node, response, 'changed');
    for (const event of events) this.#deps.recorder.event(event);
  }

  #recordWrite(sent: Node, got: Node, why: 'changed' | 'due'): void {
    this.#deps.view.update(got);
    this.#last = { sent, got };
    this.#timer.reported(why);
    this.#deps.volumes?.reported(got.status?.volumesInUse ?? []);
  }

  async #patch(
    api: NodeStatusWriterDeps['api'],
    before: Node,
    patch: Patch,
    signal: AbortSignal,
  ): Promise<Node | undefined> {
    const ref = { ...this.#ref(), subresource: 'status' };
    return await this.#unlessDeleted(api.patch<Node>(ref, bound(patch, before.metadata?.uid), signal));
  }

  async #base(base: 'cached' | 'fetched', signal: AbortSignal): Promise<Node | undefined> {
    const { api, view } = this.#deps;
    const known = base === 'cached' && !view.isStale() ? view.current() : undefined;
    if (known !== undefined) return known;
    const node = await this.#unlessDeleted(api.get<Node>(this.#ref(), {}, signal));
    if (node !== undefined) view.update(node);
    return node;
  }

  async #unlessDeleted(response: Promise<Node>): Promise<Node | undefined> {
    try {
      return await response;
    } catch (error) {
      if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
      this.#deps.view.deleted();
      return undefined;
    }
  }

  async #failed(error: unknown, attempt: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clock, connections, log } = this.#deps;
    log.problem('update the status of the node', error);
    if (isApiCode(error, 'API_CONFLICT')) return;
    // A new connection is used, because a dead one would fail every update for a quarter of an
    // hour.
    if (attempt > 0) connections.redial();
    if (attempt < mostTries - 1) await clock.sleep(backoffDelayMs(retryPolicy, attempt + 1), signal);
  }

  #recordSchedulable(node: Node): void {
    const now = node.spec?.unschedulable === true;
    if (now === this.#unschedulable) return;
    this.#unschedulable = now;
    const { recorder, settings } = this.#deps;
    recorder.event(statusEvent(settings.name, now ? 'NodeNotSchedulable' : 'NodeSchedulable'));
  }

  #ref(): ObjectRef {
    return { resource: apiResources.nodes, name: this.#deps.settings.name };
  }
}

/**
 * Adds the UID as a precondition, so that a recreated Node of the same name is not patched with the
 * status of the old one.
 */
function bound({ kind, body }: Patch, uid: string | undefined): Patch {
  const { metadata, ...others } = body as { readonly metadata?: object };
  return { kind, body: { ...others, metadata: { ...metadata, uid } } };
}

/** Whether the status must be written: any change except the heartbeat time. */
export function isNodeChanged(before: Node, after: Node): boolean {
  return !sameJson(reported(before), reported(after));
}

/**
 * The published status in a form for comparison: empty fields equal missing ones, and the order of
 * conditions is irrelevant.
 */
function reported({ metadata, status = {} }: Node): unknown {
  const { conditions = [], ...others } = status;
  return pruned({
    labels: metadata?.labels,
    annotations: metadata?.annotations,
    others,
    conditions: conditions.map(withoutHeartbeat).toSorted((a, b) => (a.type < b.type ? -1 : 1)),
  });
}

function withoutHeartbeat({ lastHeartbeatTime: _, ...condition }: NodeCondition): NodeCondition {
  return condition;
}

function pruned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === '' ? undefined : value;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(pruned);
  const retained = Object.entries(value)
    .map(([key, part]) => [key, pruned(part)] as const)
    .filter(([, part]) => part !== undefined);
  return retained.length === 0 ? undefined : Object.fromEntries(retained);
}

/**
 * The times at which an unchanged status is written. At the start and after a change the period is
 * randomized by half, so that the nodes of a cluster do not write at the same time; then it is
 * constant.
 */
class ReportTimer {
  readonly #periodMs: number;
  readonly #clock: Clock;
  readonly #random: Random;
  #dueMs: number | undefined;

  constructor(periodMs: number, clock: Clock, random: Random) {
    this.#periodMs = periodMs;
    this.#clock = clock;
    this.#random = random;
  }

  /** Whether an unchanged status must be written: always before the first write. */
  isDue(): boolean {
    return this.#dueMs === undefined || this.#clock.monotonicMs() >= this.#dueMs;
  }

  reported(why: 'changed' | 'due'): void {
    const isFirst = this.#dueMs === undefined;
    const shiftMs = why === 'changed' || isFirst ? this.#periodMs * (this.#random.next() - 0.5) : 0;
    this.#dueMs = this.#clock.monotonicMs() + this.#periodMs + shiftMs;
  }
}
