import { type ApiClient, apiResources, isApiCode, type ObjectRef } from '../api/index.ts';
import type { ObjectMeta } from '../kinds/index.ts';
import { Backoff, backoffDelayMs, type Clock, type Instant, jitter, type Random } from '../lib/index.ts';
import type { HeartbeatConnections } from './inputs.ts';
import type { NodeLog } from './node-log.ts';
import type { NodeSource } from './node-view.ts';
import type { NodeSettings } from './settings.ts';

export interface Lease {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
  readonly spec?:
    | {
        readonly holderIdentity?: string | undefined;
        readonly leaseDurationSeconds?: number | undefined;
        readonly renewTime?: string | undefined;
      }
    | undefined;
}

export interface NodeLeaseDeps {
  readonly api: Pick<ApiClient, 'get' | 'create' | 'update'>;
  readonly settings: Pick<NodeSettings, 'name' | 'leaseDurationSeconds'>;
  readonly clock: Clock;
  readonly random: Random;
  /** The Node that owns the lease: without a Node no lease is created. */
  readonly node: NodeSource;
  readonly connections: HeartbeatConnections;
  readonly log: NodeLog;
}

const namespace = 'kube-node-lease';
/** The interval of checks for a missing Node; they make no API call. */
const noNodeMs = 1_000;
const mostTries = 5;
const retryPolicy = { baseMs: 100, maxMs: 1_000 };
const what = 'renew the lease of the node';

/**
 * The heartbeat of the node, independent of its status. It must run until the end of a graceful
 * shutdown.
 */
export class NodeLease {
  readonly #deps: NodeLeaseDeps;
  readonly #ref: ObjectRef;
  /** The lease from the last response of the API server, so that a renewal needs no read. */
  #last: Lease | undefined;

  constructor(deps: NodeLeaseDeps) {
    this.#deps = deps;
    this.#ref = { resource: apiResources.leases, namespace, name: deps.settings.name };
  }

  /** Renews the lease until aborted; rejects only with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, random, settings } = this.#deps;
    const everyMs = settings.leaseDurationSeconds * 250;
    for (;;) {
      const outcome = await this.#renewOnce(signal);
      // Renews the lease immediately after the registration of the node.
      const pauseMs = outcome === 'no-node' ? Math.min(noNodeMs, everyMs) : everyMs;
      await clock.sleep(jitter(random, pauseMs, 0.04), signal);
    }
  }

  async #renewOnce(signal: AbortSignal): Promise<'done' | 'no-node'> {
    const uid = this.#deps.node.current()?.metadata?.uid;
    if (uid === undefined) {
      this.#last = undefined;
      return 'no-node';
    }
    if (this.#last !== undefined && (await this.#renew(uid, signal)) === 'renewed') return 'done';
    const found = await this.#ensure(uid, signal);
    if (found === 'existing') await this.#renew(uid, signal);
    return found === 'no-node' ? 'no-node' : 'done';
  }

  async #renew(uid: string, signal: AbortSignal): Promise<'renewed' | 'failed'> {
    const { api, log } = this.#deps;
    for (let attempt = 0; attempt < mostTries; attempt++) {
      try {
        this.#last = await api.update<Lease>(this.#ref, this.#renewed(this.#last, uid), signal);
        log.recovered(what);
        return 'renewed';
      } catch (error) {
        if (await this.#isLost(error, attempt, signal)) return 'failed';
      }
    }
    return 'failed';
  }

  /** Whether the renewal failed because the lease was deleted. */
  async #isLost(error: unknown, attempt: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const { api, clock, connections, log } = this.#deps;
    log.problem(what, error);
    if (isApiCode(error, 'API_NOT_FOUND')) {
      this.#last = undefined;
      return true;
    }
    if (isApiCode(error, 'API_CONFLICT')) {
      this.#last = await api.get<Lease>(this.#ref, {}, signal).catch(() => this.#last);
      signal.throwIfAborted();
      return false;
    }
    if (attempt > 0) connections.redial();
    if (attempt < mostTries - 1) await clock.sleep(backoffDelayMs(retryPolicy, attempt + 1), signal);
    return false;
  }

  /** Creates the missing lease. Retries with back-off as long as there is a Node. */
  async #ensure(uid: string, signal: AbortSignal): Promise<'existing' | 'created' | 'no-node'> {
    const { clock, random, node, connections, log } = this.#deps;
    const backoff = new Backoff(
      { baseMs: 200, maxMs: 7_000, resetAfterMs: Number.POSITIVE_INFINITY },
      random,
    );
    for (;;) {
      try {
        return await this.#findOrCreate(uid, signal);
      } catch (error) {
        signal.throwIfAborted();
        log.problem(what, error);
        if (backoff.failures > 0) connections.redial();
      }
      await clock.sleep(backoff.fail(clock.monotonicMs()), signal);
      if (node.current()?.metadata?.uid !== uid) return 'no-node';
    }
  }

  async #findOrCreate(uid: string, signal: AbortSignal): Promise<'existing' | 'created'> {
    const { api, log } = this.#deps;
    try {
      this.#last = await api.get<Lease>(this.#ref, {}, signal);
      return 'existing';
    } catch (error) {
      if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
    }
    this.#last = await api.create<Lease>(
      { resource: apiResources.leases, namespace },
      this.#renewed(undefined, uid),
      signal,
    );
    log.recovered(what);
    return 'created';
  }

  /**
   * Also corrects the owner: a lease owned by an earlier Node of the same name would be garbage
   * collected.
   */
  #renewed(base: Lease | undefined, uid: string): Lease {
    const { settings, clock } = this.#deps;
    const { name, leaseDurationSeconds } = settings;
    const others = (base?.metadata?.ownerReferences ?? []).filter(({ kind }) => kind !== 'Node');
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        ...base?.metadata,
        name,
        namespace,
        ownerReferences: [...others, { apiVersion: 'v1', kind: 'Node', name, uid }],
      },
      spec: { ...base?.spec, holderIdentity: name, leaseDurationSeconds, renewTime: microTime(clock.now()) },
    };
  }
}

/** Formats a lease time with microseconds, always with six digits. */
export function microTime(at: Instant): string {
  return new Date(at).toISOString().replace('Z', '000Z');
}
