import type { Container } from '../../kinds/index.ts';
import { type Clock, describeError, KeyedMutex, KubelingError, type Logger } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
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

/** Where what is known of claims outlives the process. */
export interface ClaimFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export interface DraManagerDeps {
  readonly drivers: Pick<DraDrivers, 'find' | 'prepare' | 'unprepare'>;
  readonly fetchClaim: (namespace: string, name: string, signal: AbortSignal) => Promise<ResourceClaim>;
  readonly file: ClaimFile;
  /** Whether anything of the pod may still run, or start. */
  readonly mayRun: (uid: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: Pick<DraObserver, 'operation'> | undefined;
}

const operations = {
  PrepareResources: { code: 'DRA_PREPARE', words: 'prepare dynamic resources' },
  UnprepareResources: { code: 'DRA_UNPREPARE', words: 'unprepare dynamic resources' },
} as const;

/** Of each container its claims. */
export interface AllocatedClaims {
  of(pod: Pod, container: Pick<Container, 'name' | 'resources'>): readonly ClaimInfo[];
}

const reconcileMs = 60_000;

interface Entry extends ClaimInfo {
  /** In this process: after a restart drivers are asked once more, who then have nothing to do. */
  readonly prepared: boolean;
}

/** Has drivers make ready what claims of pods were given, and take it back when no pod uses it any more. */
export class DraManager {
  readonly #deps: DraManagerDeps;
  readonly #claims = new Map<string, Entry>();
  readonly #locks = new KeyedMutex<string>();
  /** Settles when nothing is being written; never rejects. */
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: DraManagerDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#claims.size;
  }

  /** What an earlier kubelet has noted. Begins with nothing when that cannot be read. */
  async restore(): Promise<void> {
    try {
      const text = await this.#deps.file.read();
      for (const claim of text === undefined ? [] : decodeClaims(text))
        this.#claims.set(keyOf(claim), { ...claim, prepared: false });
    } catch (error) {
      this.#deps.logger.error('What is known of resource claims is lost', error);
    }
  }

  /** The drivers of each claim that they have made ready. */
  get inUse(): readonly (readonly string[])[] {
    const ready = [...this.#claims.values()].filter(({ prepared }) => prepared);
    return ready.map(({ drivers }) => [...drivers.keys()]);
  }

  /** To be called before the sandbox of the pod is made; may be repeated. Rejects with DRA_PREPARE, and is to be tried again. */
  async prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#operation('PrepareResources', () => this.#prepare(pod, signal), signal);
  }

  /** Nothing of the pod runs any more. Rejects with DRA_UNPREPARE while a driver does not take back what it gave. */
  async unprepare(uid: string, signal: AbortSignal): Promise<void> {
    await this.#operation('UnprepareResources', () => this.#unprepare(uid, signal), signal);
  }

  /** What the container is given, as the runtime knows it. */
  cdiDevices(pod: Pod, container: Pick<Container, 'name' | 'resources'>): readonly string[] {
    return requestsOf(pod, container).flatMap(({ claim, request }) => {
      const known = this.#claims.get(keyOf({ namespace: pod.metadata.namespace, name: claim }));
      if (known === undefined)
        throw new KubelingError('DRA_PREPARE', `ResourceClaim ${claim} is not prepared`);
      return [...known.drivers.values()].flat().flatMap((device) => idsFor(device, request));
    });
  }

  /** What was made ready of the claims that a container uses. */
  allocated(): AllocatedClaims {
    return {
      of: (pod, container) => {
        const { namespace } = pod.metadata;
        const names = new Set(requestsMade(pod, container).map(({ claim }) => claim));
        return [...names].flatMap((name) => this.#claims.get(keyOf({ namespace, name })) ?? []);
      },
    };
  }

  /** Takes back once a minute what is left of pods that ended unseen. Ends with the signal, without an error. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger, mayRun } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(reconcileMs, signal).catch(() => {});
      const users = new Set([...this.#claims.values()].flatMap(({ pods }) => [...pods]));
      for (const uid of users) {
        if (signal.aborted || mayRun(uid)) continue;
        await this.unprepare(uid, signal).catch((error: unknown) => {
          if (!signal.aborted)
            logger.error('Resources of a pod that is gone are not taken back', error, { podUid: uid });
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
    const wanted = claimsOf(pod);
    if (wanted.length === 0) return;
    const { namespace } = pod.metadata;
    const keys = wanted.map(({ name }) => keyOf({ namespace, name }));
    using _held = await this.#locks.acquireAll(keys, signal);
    const claims = await Promise.all(
      wanted.map(async (one) => {
        const claim = await this.#fetch(namespace, one.name, signal);
        checkClaim(pod, one, claim);
        return claim;
      }),
    );
    // Before anything is noted: what no driver is here for, no driver has to take back.
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
    for (const [driver, asked] of byDriver)
      await this.#callDriver(
        driver,
        asked.map(({ claim }) => claim),
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
    const asked = claims.map(({ metadata: { namespace, uid, name } }) => ({ namespace, uid, name }));
    const answers = await this.#deps.drivers.prepare(driver, asked, signal);
    checkAnswers('NodePrepareResources', asked, answers);
    for (const { metadata } of claims) {
      const { devices = [] } = answers[metadata.uid] ?? {};
      const ready = devices.map(({ shareId, ...device }) => ({ ...device, shareId: shareId || undefined }));
      // What it says now is all there is, however often it was asked.
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
      const asked = [{ namespace: entry.namespace, uid: entry.uid, name: entry.name }];
      for (const driver of entry.drivers.keys()) {
        const answers = await this.#deps.drivers.unprepare(driver, asked, signal);
        checkAnswers('NodeUnprepareResources', asked, answers);
      }
      this.#claims.delete(key);
    } else this.#claims.set(key, { ...entry, pods });
    await this.#save();
  }

  #change(key: string, change: (entry: Entry) => Entry): void {
    const entry = this.#claims.get(key);
    if (entry !== undefined) this.#claims.set(key, change(entry));
  }

  /** One at a time, each with what holds when its turn comes: an older write never comes after a newer one. */
  async #save(): Promise<void> {
    const write = () => this.#deps.file.write(encodeClaims([...this.#claims.values()]));
    const mine = this.#writing.then(write);
    this.#writing = mine.catch(() => {});
    await mine;
  }
}

/** None of a pod of which a claim is still to be made. */
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

/** A request may name one of several alternatives, as in request/alternative; containers know only the request. */
function idsFor({ requestNames, cdiDeviceIds }: ClaimDevice, request: string): readonly string[] {
  const isFor = request === '' || requestNames.length === 0 || requestNames.includes(request);
  return isFor ? cdiDeviceIds : [];
}

function checkAnswers(
  method: string,
  asked: readonly { readonly uid: string; readonly name: string }[],
  answers: Readonly<Record<string, { readonly error: string }>>,
): void {
  const unknown = Object.keys(answers).find((uid) => asked.every((claim) => claim.uid !== uid));
  if (unknown !== undefined) throw new Error(`${method} returned result for unknown claim UID ${unknown}`);
  for (const { uid, name } of asked) {
    const { error = '' } = answers[uid] ?? {};
    if (error !== '') throw new Error(`${method} failed for ResourceClaim ${name}: ${error}`);
  }
  const skipped = asked.filter(({ uid }) => answers[uid] === undefined).length;
  if (skipped > 0) throw new Error(`${method} skipped ${skipped} ResourceClaims`);
}
