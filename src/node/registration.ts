import { type ApiClient, apiResources, isApiCode } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { Backoff, type Clock, isKind, KubelingError, type Random } from '../lib/index.ts';
import type { ComputedNode } from './compute-node.ts';
import { isReady } from './conditions.ts';
import type { NodeResources } from './inputs.ts';
import type { FactReader, NodeFacts } from './node-facts.ts';
import type { NodeLog } from './node-log.ts';
import { adoptedMetadata, initialNode, labelChanges, requiredMetadata, taintDrift } from './node-object.ts';
import type { NodeStatusWriter } from './node-status-writer.ts';
import type { NodeView } from './node-view.ts';
import type { NodeSettings } from './settings.ts';

export interface RegistrationDeps {
  readonly api: Pick<ApiClient, 'get' | 'create'>;
  readonly settings: NodeSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly view: NodeView;
  readonly facts: FactReader;
  readonly writer: NodeStatusWriter;
  readonly resources: NodeResources;
  readonly log: NodeLog;
}

const what = 'register the node';
const stabilizeMs = 5_000;
const stabilizeStepMs = 100;

/**
 * Creates or adopts the Node object. May be called again, for example after the Node was deleted.
 */
export class Registration {
  readonly #deps: RegistrationDeps;
  #uid: string | undefined;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
  }

  /** The UID of the registered Node; undefined before registration. */
  get uid(): string | undefined {
    return this.#uid;
  }

  /** Registers the node, with retries and back-off. Rejects only when aborted. */
  async register(signal: AbortSignal): Promise<Node> {
    const { clock, random, log, settings } = this.#deps;
    const backoff = new Backoff(
      { baseMs: 100, maxMs: 7_000, resetAfterMs: Number.POSITIVE_INFINITY },
      random,
    );
    for (;;) {
      try {
        const node = await this.#try(signal);
        this.#uid = node.metadata?.uid;
        log.recovered(what);
        log.info('Registered node', { node: settings.name });
        return node;
      } catch (error) {
        signal.throwIfAborted();
        log.problem(what, error);
      }
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal);
    }
  }

  async #try(signal: AbortSignal): Promise<Node> {
    const { api, settings, facts, writer } = this.#deps;
    const known = await facts.read('query-runtime', signal);
    const computed = writer.compute(initialNode(settings), known);
    try {
      const node = await api.create<Node>({ resource: apiResources.nodes }, computed.node, signal);
      writer.created(node, computed);
      return node;
    } catch (error) {
      // A kubelet without permission to create nodes uses a Node that an administrator created.
      if (!isApiCode(error, 'API_CONFLICT', 'API_FORBIDDEN')) throw error;
      return await this.#adopt(await this.#existing(error, signal), known, signal);
    }
  }

  async #existing(refusal: unknown, signal: AbortSignal): Promise<Node> {
    const { api, settings } = this.#deps;
    try {
      return await api.get<Node>({ resource: apiResources.nodes, name: settings.name }, {}, signal);
    } catch (error) {
      throw isApiCode(error, 'API_NOT_FOUND') ? refusal : error;
    }
  }

  /** Adds in one write everything that an existing Node lacks: labels, annotations and status. */
  async #adopt(existing: Node, facts: NodeFacts, signal: AbortSignal): Promise<Node> {
    const { settings, writer, resources, log } = this.#deps;
    this.#logDifferences(existing);
    const extended = resources.areDevicesUnregistered?.() === true ? 'zeroed' : 'kept';
    const computed = writer.compute(existing, await this.#stableFacts(existing, facts, signal), extended);
    const desired = withMetadata(computed, adoptedMetadata(computed.node, settings));
    try {
      return await this.#write(existing, desired, signal);
    } catch (error) {
      if (!isKind(error, 'Denied', 'Invalid')) throw error;
      // A label that the API server forbids must not prevent registration.
      log.problem('set the labels of the node', error);
      return await this.#write(
        existing,
        withMetadata(computed, requiredMetadata(computed.node, settings)),
        signal,
      );
    }
  }

  /**
   * After a restart of the kubelet, waits for a limited time until all checks of the node succeed,
   * so that a Node that is Ready does not become NotReady in between.
   */
  async #stableFacts(existing: Node, facts: NodeFacts, signal: AbortSignal): Promise<NodeFacts> {
    const { clock, facts: reader } = this.#deps;
    const untilMs = clock.monotonicMs() + stabilizeMs;
    let known = facts;
    while (isReady(existing) && known.problems.length > 0 && clock.monotonicMs() < untilMs) {
      await clock.sleep(stabilizeStepMs, signal);
      known = await reader.read('query-runtime', signal);
    }
    return known;
  }

  async #write(existing: Node, desired: ComputedNode, signal: AbortSignal): Promise<Node> {
    const { writer, view } = this.#deps;
    if (!writer.isChanged(existing, desired.node)) {
      view.update(existing);
      return existing;
    }
    return (await writer.commit(existing, desired, signal)) ?? this.#deletedMeanwhile();
  }

  /** The Node was deleted between read and write: the next attempt creates it. */
  #deletedMeanwhile(): never {
    throw new KubelingError(
      'NODE_GONE',
      `Cannot adopt node ${this.#deps.settings.name}: it was just deleted`,
    );
  }

  #logDifferences(existing: Node): void {
    const { settings, log } = this.#deps;
    const labels = Object.entries(labelChanges(existing, settings)).map(([key, value]) =>
      value === null ? `-${key}` : `${key}=${value}`,
    );
    log.info('Adopted existing node', { node: settings.name, labelChanges: labels });
    const drift = taintDrift(existing, settings.taints);
    if (drift.length === 0) return;
    log.warn('Existing node has other taints than configured, keeping them', {
      drift,
    });
  }
}

function withMetadata(computed: ComputedNode, metadata: Node['metadata']): ComputedNode {
  return { ...computed, node: { ...computed.node, metadata } };
}
