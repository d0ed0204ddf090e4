import type { Container } from '../../kinds/index.ts';
import { type Clock, describeError, KeyedMutex, KubelingError, type Logger } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import {
  type ClaimDevice,
  type ClaimInfo,
  checkClaim,
  claimsOf,
  decodeClaims,
  driversOf,
  encodeClaims,
  type ResourceClaim,
  requestsOf,
} from './claim-info.ts';
import type { DraDrivers } from './dra-drivers.ts';
import type { DraObserver } from './metrics.ts';

/** The file operations for the claim checkpoint. */
export interface ClaimFile {
  /** Reads the claim checkpoint; undefined if the file does not exist. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export interface DraManagerDeps {
  readonly drivers: Pick<DraDrivers, 'find' | 'prepare' | 'unprepare'>;
  readonly fetchClaim: (namespace: string, name: string, signal: AbortSignal) => Promise<ResourceClaim>;
  readonly file: ClaimFile;
  /** Whether a container of the pod may still run or start. */
  readonly mayRun: (uid: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: Pick<DraObserver, 'operation'> | undefined;
}

const operations = {
  PrepareResources: { code: 'DRA_PREPARE', words: 'prepare dynamic resources' },
  UnprepareResources: { code: 'DRA_UNPREPARE', words: 'unprepare dynamic resources' },
} as const;

/** The prepared claims of each container. */
export interface AllocatedClaims {
  of(pod: Pod, container: Pick<Container, 'name' | 'resources'>): readonly ClaimInfo[];
}

const reconcileMs = 60_000;

interface Entry extends ClaimInfo {
  /**
   * The claims prepared by this kubelet process. Claims restored from the checkpoint are prepared
   * once more, which is idempotent.
   */
  readonly prepared: boolean;
}

/**
 * Prepares the resource claims of pods through their DRA drivers, and unprepares them after the
 * last pod that uses them.
 */
export class DraManager {
  readonly #deps: DraManagerDeps;
  readonly #claims = new Map<string, Entry>();
  readonly #locks = new KeyedMutex<string>();
  /** Resolves when no checkpoint write is in progress; never rejects. */
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: DraManagerDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#claims.size;
  }

  /**
   * Restores the claims from the checkpoint of a previous kubelet; starts without claims if it
   * cannot be read.
   */
  async restore(): Promise<void> {
    try {
      const text = await this.#deps.file.read();
      for (const claim of text === undefined ? [] : decodeClaims(text))
        this.#claims.set(keyOf(claim), { ...claim, prepared: false });
    } catch (error) {
      this.#deps.logger.error('Failed to restore resource claims', error);
    }
  }

  /** Returns, for each prepared claim, the names of its drivers. */
  get inUse(): readonly (readonly string[])[] {
    const ready = [...this.#claims.values()].filter(({ prepared }) => prepared);
    return ready.map(({ drivers }) => [...drivers.keys()]);
  }

  /**
   * Prepares all claims of the pod; called before the sandbox is created. Idempotent. Rejects with
   * DRA_PREPARE; the caller retries.
   */
  async prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#operation('PrepareResources', () => this.#prepare(pod, signal), signal);
  }

  /**
   * Unprepares the claims of the pod; called when no container of the pod runs. Rejects with
   * DRA_UNPREPARE while a driver fails.
   */
  async unprepare(uid: string, signal: AbortSignal): Promise<void> {
    await this.#operation('UnprepareResources', () => this.#unprepare(uid, signal), signal);
  }

  /** Returns the CDI device IDs for the container. */
  cdiDevices(pod: Pod, container: Pick<Container, 'name' | 'resources'>): readonly string[] {
    return requestsOf(pod, container).flatMap(({ claim, request }) => {
      const known = this.#claims.get(keyOf({ namespace: pod.metadata.namespace, name: claim }));
      if (known === undefined)
        throw new KubelingError('DRA_PREPARE', `ResourceClaim ${claim} is not prepared`);
      return [...known.drivers.values()].flat().flatMap((device) => idsFor(device, request));
    });
  }

  /** Returns the prepared devices of the claims that the container uses. */
  allocated(): AllocatedClaims {
    return {
      of: (pod, container) => {
        const { namespace } = pod.metadata;
        const names = new Set(requestsMade(pod, container).map(({ claim }) => claim));
        return [...names].flatMap((name) => this.#claims.get(keyOf({ namespace, name })) ?? []);
      },
    };
  }

  /** Unprepares the claims of orphaned pods every minute. Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger, mayRun } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(reconcileMs, signal).catch(() => {});
      const users = new Set([...this.#claims.values()].flatMap(({ pods }) => [...pods]));
      for (const uid of users) {
        if (signal.aborted || mayRun(uid)) continue;
        await this.unprepare(uid, signal).catch((error: unknown) => {
          if (!signal.aborted)
            logger.error('Failed to unprepare the resources of an orphaned pod', error, { podUid: uid });
        });
      }
    }
  }

  async #operation(
    name: keyof typeof operations,
    work: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, observer } = this.#deps;
    const startMs = clock.monotonicMs();
    const tell = (outcome: 'done' | 'failed') =>
      observer?.operation(name, outcome, clock.monotonicMs() - startMs);
    try {
      await work();
      tell('done');
    } catch (error) {
      signal.throwIfAborted();
      tell('failed');
      const { code, words } = operations[name];
      throw new KubelingError(code, `${words}: ${describeError(error)}`, { cause: error });
    }
  }

  async #prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    const required = claimsOf(pod);
    if (required.length === 0) return;
    const { namespace } = pod.metadata;
    const keys = required.map(({ name }) => keyOf({ namespace, name }));
    using _held = await this.#locks.acquireAll(keys, signal);
    const claims = await Promise.all(
      required.map(async (one) => {
        const claim = await this.#fetch(namespace, one.name, signal);
        checkClaim(pod, one, claim);
        return claim;
      }),
    );
    // All drivers are looked up before the claim is recorded: if one of them is not registered,
    // nothing has to be unprepared.
    for (const claim of claims) for (const driver of driversOf(claim)) this.#deps.drivers.find(driver);
    await this.#prepareAll(pod.metadata.uid, claims, signal);
  }

  async #unprepare(uid: string, signal: AbortSignal): Promise<void> {
    const keys = [...this.#claims].filter(([, { pods }]) => pods.has(uid)).map(([key]) => key);
    if (keys.length === 0) return;
    using _held = await this.#locks.acquireAll(keys, signal);
    for (const key of keys) await this.#release(key, uid, signal);
  }

  async #fetch(namespace: string, name: string, signal: AbortSignal): Promise<ResourceClaim> {
    try {
      return await this.#deps.fetchClaim(namespace, name, signal);
    } catch (error) {
      throw new Error(`fetch ResourceClaim ${name}: ${describeError(error)}`);
    }
  }

  async #prepareAll(uid: string, claims: readonly ResourceClaim[], signal: AbortSignal): Promise<void> {
    for (const claim of claims) this.#claims.set(keyOf(claim.metadata), this.#entryFor(claim, uid));
    await this.#save();
    const waiting = claims.filter(({ metadata }) => this.#claims.get(keyOf(metadata))?.prepared === false);
    const byDriver = Map.groupBy(
      waiting.flatMap((claim) => driversOf(claim).map((driver) => ({ driver, claim }))),
      ({ driver }) => driver,
    );
    for (const [driver, requested] of byDriver)
      await this.#callDriver(
        driver,
        requested.map(({ claim }) => claim),
        signal,
      );
    for (const { metadata } of waiting)
      this.#change(keyOf(metadata), (entry) => ({ ...entry, prepared: true }));
    await this.#save();
  }

  #entryFor(claim: ResourceClaim, uid: string): Entry {
    const { metadata } = claim;
    const known = this.#claims.get(keyOf(metadata));
    if (known !== undefined && known.uid !== metadata.uid) {
      throw new Error(
        `old ResourceClaim with same name ${metadata.name} and different UID ${known.uid} still exists (previous pod force-deleted?!)`,
      );
    }
    if (known !== undefined) return { ...known, pods: new Set([...known.pods, uid]) };
    const { name, namespace } = metadata;
    const drivers = new Map(driversOf(claim).map((driver) => [driver, []] as const));
    return { uid: metadata.uid, name, namespace, pods: new Set([uid]), drivers, prepared: false };
  }

  async #callDriver(driver: string, claims: readonly ResourceClaim[], signal: AbortSignal): Promise<void> {
    const requested = claims.map(({ metadata: { namespace, uid, name } }) => ({ namespace, uid, name }));
    const answers = await this.#deps.drivers.prepare(driver, requested, signal);
    checkAnswers('NodePrepareResources', requested, answers);
    for (const { metadata } of claims) {
      const { devices = [] } = answers[metadata.uid] ?? {};
      const ready = devices.map(({ shareId, ...device }) => ({ ...device, shareId: shareId || undefined }));
      // The response of a driver contains all prepared devices of the claim, even if the driver is
      // called repeatedly.
      this.#change(keyOf(metadata), (entry) => ({
        ...entry,
        drivers: new Map([...entry.drivers, [driver, ready]]),
      }));
    }
  }

  async #release(key: string, uid: string, signal: AbortSignal): Promise<void> {
    const entry = this.#claims.get(key);
    if (entry === undefined) return;
    const pods = new Set([...entry.pods].filter((other) => other !== uid));
    if (pods.size === 0) {
      const requested = [{ namespace: entry.namespace, uid: entry.uid, name: entry.name }];
      for (const driver of entry.drivers.keys()) {
        const answers = await this.#deps.drivers.unprepare(driver, requested, signal);
        checkAnswers('NodeUnprepareResources', requested, answers);
      }
      this.#claims.delete(key);
    } else this.#claims.set(key, { ...entry, pods });
    await this.#save();
  }

  #change(key: string, change: (entry: Entry) => Entry): void {
    const entry = this.#claims.get(key);
    if (entry !== undefined) this.#claims.set(key, change(entry));
  }

  /**
   * Checkpoint writes are serialized, and each write persists the state at its start, so an older
   * state never replaces a newer one.
   */
  async #save(): Promise<void> {
    const write = () => this.#deps.file.write(encodeClaims([...this.#claims.values()]));
    const mine = this.#writing.then(write);
    this.#writing = mine.catch(() => {});
    await mine;
  }
}

/**
 * Returns the claim requests of the container; none for a pod whose claims have not been created
 * yet.
 */
function requestsMade(...of: Parameters<typeof requestsOf>): ReturnType<typeof requestsOf> {
  try {
    return requestsOf(...of);
  } catch {
    return [];
  }
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/**
 * The name of a prepared request may have the form request/alternative, if the claim lists several
 * alternatives for the request; containers name only the request.
 */
function idsFor({ requestNames, cdiDeviceIds }: ClaimDevice, request: string): readonly string[] {
  const isFor = request === '' || requestNames.length === 0 || requestNames.includes(request);
  return isFor ? cdiDeviceIds : [];
}

function checkAnswers(
  method: string,
  requested: readonly { readonly uid: string; readonly name: string }[],
  answers: Readonly<Record<string, { readonly error: string }>>,
): void {
  const unknown = Object.keys(answers).find((uid) => requested.every((claim) => claim.uid !== uid));
  if (unknown !== undefined) throw new Error(`${method} returned result for unknown claim UID ${unknown}`);
  for (const { uid, name } of requested) {
    const { error = '' } = answers[uid] ?? {};
    if (error !== '') throw new Error(`${method} failed for ResourceClaim ${name}: ${error}`);
  }
  const skipped = requested.filter(({ uid }) => answers[uid] === undefined).length;
  if (skipped > 0) throw new Error(`${method} skipped ${skipped} ResourceClaims`);
}

export interface PrepareClaimsDeps {
  readonly claims?: Pick<DraManager, 'prepare'> | undefined;
  readonly journal: Pick<PodJournal, 'event'>;
}

/**
 * Prepares the resource claims of the pod before its sandbox is created; reports a failure as pod
 * event and rejects.
 */
export async function prepareClaims(
  { claims, journal }: PrepareClaimsDeps,
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  try {
    await claims?.prepare(pod, signal);
  } catch (error) {
    signal.throwIfAborted();
    const message = `Failed to prepare dynamic resources: ${describeError(error)}`;
    journal.event(pod, { type: 'Warning', reason: 'FailedPrepareDynamicResources', message });
    throw error;
  }
}
