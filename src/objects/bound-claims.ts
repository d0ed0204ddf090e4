import { type ApiClient, type ApiObject, apiResources, isApiCode, type ObjectRef } from '../api/index.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../kinds/index.ts';
import { type Clock, describeError, HintLatch, isKind, KubelingError, SingleFlight } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import { type ObjectName, objectNameKey } from './referred-store.ts';

/** A PersistentVolumeClaim and its bound volume. */
export interface BoundClaim {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

export interface BoundClaimsDeps {
  readonly api: Pick<ApiClient, 'get'>;
  readonly clock: Clock;
  /**
   * Called when a claim that a pod waits for has changed: the sync of the pod should be retried.
   */
  readonly onChange: (claim: ObjectName) => void;
}

/** A claim that pods wait for, with its last error. */
interface Awaited {
  readonly claim: ObjectName;
  readonly pods: Set<PodUid>;
  problem: string;
  polledMs: number;
}

const protection = 'kubernetes.io/pvc-protection';
const pollEveryMs = 1_000;
/**
 * The rate limit of polling, however many pods wait for claims, so that other API calls are not
 * delayed.
 */
const maxPolls = 10;
const idleMs = 600_000;

/**
 * The claims of the pods on this node. A node may read claims but not watch them, so a claim that
 * is not bound is polled for as long as a pod waits for it.
 */
export class BoundClaims {
  readonly #deps: BoundClaimsDeps;
  readonly #flights = new SingleFlight<string, BoundClaim>();
  readonly #awaited = new Map<string, Awaited>();
  readonly #polling = new Map<string, Promise<void>>();
  readonly #waits: HintLatch;

  constructor(deps: BoundClaimsDeps) {
    this.#deps = deps;
    this.#waits = new HintLatch(deps.clock);
  }

  /** The number of claims that pods wait for. */
  get size(): number {
    return this.#awaited.size;
  }

  /**
   * Reads the claim from the API on each call. Rejects with CLAIM_UNBOUND and the message for the
   * pod's event when the claim cannot be used, and with CLAIM_UNREAD when the API server cannot be
   * read; the pod then waits for the claim until `forgetPod` or a successful call.
   */
  async get(claim: ObjectName, pod: PodUid, signal: AbortSignal): Promise<BoundClaim> {
    try {
      const found = await this.#read(claim, signal);
      this.#removePod(objectNameKey(claim), pod);
      return found;
    } catch (error) {
      signal.throwIfAborted();
      this.#wait(claim, pod, describeError(error));
      throw error;
    }
  }

  /** Records that the pod no longer waits for any claim. */
  forgetPod(pod: PodUid): void {
    for (const key of [...this.#awaited.keys()]) this.#removePod(key, pod);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        await this.#waits.wait(idleMs, signal);
        this.#waits.clear();
        while (this.#awaited.size > 0) {
          await this.#deps.clock.sleep(pollEveryMs, signal);
          this.#pollOldest(signal);
        }
      }
    } finally {
      await Promise.allSettled(this.#polling.values());
      // Polls until aborted. A restarted loop continues with the claims that pods still wait for.
      if (this.#awaited.size > 0) this.#waits.raise();
    }
  }

  #wait(claim: ObjectName, pod: PodUid, problem: string): void {
    const key = objectNameKey(claim);
    const polledMs = this.#deps.clock.monotonicMs();
    const awaited = this.#awaited.get(key) ?? { claim, pods: new Set(), problem, polledMs };
    awaited.pods.add(pod);
    Object.assign(awaited, { problem, polledMs });
    this.#awaited.set(key, awaited);
    this.#waits.raise();
  }

  #removePod(key: string, pod: PodUid): void {
    const pods = this.#awaited.get(key)?.pods;
    if (pods?.delete(pod) === true && pods.size === 0) this.#awaited.delete(key);
  }

  /**
   * Polls claims in the order of their last poll, the oldest first; a request without a response
   * does not block other claims.
   */
  #pollOldest(signal: AbortSignal): void {
    const idle = [...this.#awaited].filter(([key]) => !this.#polling.has(key));
    const oldest = idle.toSorted(([, a], [, b]) => a.polledMs - b.polledMs);
    for (const [key, awaited] of oldest.slice(0, maxPolls - this.#polling.size)) {
      const poll = this.#poll(awaited, signal).finally(() => this.#polling.delete(key));
      this.#polling.set(key, poll);
    }
  }

  async #poll(awaited: Awaited, signal: AbortSignal): Promise<void> {
    const problem = await this.#read(awaited.claim, signal).then(() => '', describeError);
    awaited.polledMs = this.#deps.clock.monotonicMs();
    const key = objectNameKey(awaited.claim);
    if (signal.aborted || this.#awaited.get(key) !== awaited || problem === awaited.problem) return;
    awaited.problem = problem;
    this.#deps.onChange(awaited.claim);
  }

  async #read(claim: ObjectName, signal: AbortSignal): Promise<BoundClaim> {
    return await this.#flights.run(objectNameKey(claim), (inner) => this.#fetchBoth(claim, inner), signal);
  }

  async #fetchBoth({ namespace, name }: ObjectName, signal: AbortSignal): Promise<BoundClaim> {
    const { persistentVolumeClaims, persistentVolumes } = apiResources;
    const claim = await this.#fetch<PersistentVolumeClaim>(
      { resource: persistentVolumeClaims, namespace, name },
      'failed to fetch PVC from API server',
      signal,
    );
    const volumeName = boundTo(claim);
    const volume = await this.#fetch<PersistentVolume>(
      { resource: persistentVolumes, name: volumeName },
      `failed to fetch PV ${volumeName} from API server`,
      signal,
    );
    checkBinding(claim, volume);
    return { claim, volume };
  }

  async #fetch<T extends ApiObject>(ref: ObjectRef, failed: string, signal: AbortSignal): Promise<T> {
    try {
      return await this.#deps.api.get<T>(ref, {}, signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (isApiCode(cause, 'API_NOT_FOUND'))
        throw unbound(`${failed}: ${ref.resource.plural} ${JSON.stringify(ref.name)} not found`);
      // When the API server rejects the read of this claim with an error status, the claim cannot
      // be used; other errors, such as a lost connection, may disappear with the next call.
      const code = isKind(cause, 'Denied', 'Invalid') ? 'CLAIM_UNBOUND' : 'CLAIM_UNREAD';
      throw new KubelingError(code, `${failed}: ${describeError(cause)}`);
    }
  }
}

/** Returns the name of the claim's volume; throws if the claim has none that a pod may use. */
function boundTo({ metadata, spec, status }: PersistentVolumeClaim): string {
  const isProtected = metadata?.finalizers?.includes(protection) === true;
  if (metadata?.deletionTimestamp !== undefined && !isProtected) throw unbound('PVC is being deleted');
  if (status?.phase !== 'Bound') throw unbound('PVC is not bound');
  const { volumeName = '' } = spec ?? {};
  if (volumeName === '') throw unbound('PVC has empty pvc.Spec.VolumeName');
  return volumeName;
}

/** The claim and the volume must refer to each other. */
function checkBinding(claim: PersistentVolumeClaim, volume: PersistentVolume): void {
  const found = `found PV object ${volume.metadata?.name ?? ''}`;
  const ref = volume.spec?.claimRef;
  if (ref === undefined)
    throw unbound(`${found} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`);
  const uid = claim.metadata?.uid ?? '';
  if (ref.uid !== uid)
    throw unbound(
      `${found} but its pv.Spec.ClaimRef.UID ${ref.uid ?? ''} does not point to claim.UID ${uid}`,
    );
}

function unbound(why: string): KubelingError {
  return new KubelingError('CLAIM_UNBOUND', why);
}
