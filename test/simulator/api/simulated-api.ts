import {
  type ApiClient,
  type ApiObject,
  type ApiResource,
  apiResources,
  type DeleteOptions,
  type JsonObject,
  type ObjectRef,
  type Patch,
} from '../../../src/api/index.ts';
import type { Clock, Random } from '../../../src/lib/index.ts';
import {
  type ApiRequest,
  type ApiUser,
  badRequest,
  createCatalogue,
  inOneTurn,
  notFound,
  Reads,
  type StoreChange,
  type StoredObject,
  VersionedStore,
  Writes,
} from '../../../src/local-api/api/index.ts';
import { adminUser } from '../../fakes/api-users.ts';
import { Work } from '../work.ts';
import { CallCounts } from './call-counts.ts';
import { DirectWrites } from './direct-writes.ts';
import { EventExpiry } from './event-expiry.ts';
import { type ApiFault, type ApiFaultPlan, noApiFaults, type WatchFault } from './faults.ts';
import { ApiGate } from './gate.ts';
import { plainRules } from './plain-rules.ts';
import { answered } from './refused.ts';
import { type Reviewers, reviewed } from './reviews.ts';
import { type ApiServerParts, SimulatedClient } from './simulated-client.ts';
import { TokenIssuer } from './token-requests.ts';
import { brokenWatch, Watches } from './watches.ts';

/**
 * Decides about a certificate signing request: returns a certificate in PEM, a denial, or undefined
 * to leave it pending.
 */
export type Signer = (
  request: StoredObject,
) => { readonly certificate: string } | { readonly denied: string } | undefined;

export interface SimulatedApiOptions extends Reviewers {
  readonly clock: Clock;
  readonly random: Random;
  readonly faults?: ApiFaultPlan | undefined;
  /** The latency of a request, a response or an event; by default between 0.2 and 2 ms. */
  readonly latencyMs?: ((random: Random) => number) | undefined;
  /** How many changes of each resource the watch history contains; 1000 by default. */
  readonly historyLimit?: number | undefined;
  /** The interval between the bookmarks of a watch; one minute by default. */
  readonly bookmarkMs?: number | undefined;
  /** Whether watches may begin with the existing objects; by default they may. */
  readonly streamingLists?: 'offered' | 'refused' | undefined;
  /**
   * The probability that a request takes effect although its caller aborted it in flight; one half
   * by default.
   */
  readonly abandonedEffect?: number | undefined;
  /** How long events are stored; one hour by default. */
  readonly eventTtlMs?: number | undefined;
  readonly signer?: Signer | undefined;
  /** Determines the actual lifetime of a service account token from the requested one. */
  readonly tokenSeconds?: ((wanted: number) => number) | undefined;
}

/**
 * The maximum number of undelivered events of one watcher; above it the watcher is disconnected.
 */
const maxWaiting = 10_000;
const silentWatchMs = 45_000;

/**
 * A simulated API server in this process, with the given clock and random generator: the same seed
 * and the same calls give the same history. Clients get latency, faults and the permissions of
 * their user. The methods of this class are for tests: they take effect immediately, may change
 * everything, and never get faults.
 */
export class SimulatedApi implements Disposable {
  /** How often clients made calls, by verb, target and user. */
  readonly calls = new CallCounts();
  readonly #options: SimulatedApiOptions;
  readonly #work: Work;
  readonly #store: VersionedStore;
  readonly #catalogue = createCatalogue(plainRules);
  readonly #writes: Writes;
  readonly #direct: DirectWrites;
  readonly #watches: Watches;
  readonly #parts: ApiServerParts;
  readonly #struck = new Map<string, number>();
  #faults: ApiFaultPlan;

  constructor(options: SimulatedApiOptions) {
    const { clock, random } = options;
    this.#options = options;
    this.#faults = options.faults ?? noApiFaults;
    this.#work = new Work(clock);
    this.#store = new VersionedStore({ historyLimit: options.historyLimit ?? 1_000 });
    this.#watches = this.#newWatches();
    const deps = { store: this.#store, catalogue: this.#catalogue, clock, random };
    this.#writes = new Writes({ ...deps, namespaces: 'unchecked' });
    this.#direct = new DirectWrites(deps);
    this.#parts = this.#newParts();
    new EventExpiry(this.#store, clock, options.eventTtlMs ?? 3_600_000);
  }

  /**
   * Creates a client of one user. Each of its calls except a watch ends within the deadline; 30 s
   * by default.
   */
  client(user: ApiUser, options: { readonly deadlineMs?: number } = {}): ApiClient {
    return new SimulatedClient(this.#parts, user, options.deadlineMs ?? 30_000);
  }

  /** Creates or replaces an object including its status; a new object keeps the given UID. */
  put<T extends object>(resource: ApiResource, object: T): StoredObject {
    const { namespace } = ((object as ApiObject).metadata ?? {}) as { readonly namespace?: string };
    const home = resource.scope === 'cluster' ? undefined : (namespace ?? 'default');
    const request = this.#admin('update', { resource, namespace: home, name: '' });
    return answered(request, () => this.#direct.put(request, object));
  }

  /** Changes an existing object with a function. */
  change(ref: ObjectRef, edit: (object: StoredObject) => JsonObject): StoredObject {
    const request = this.#admin('update', ref);
    return answered(request, () => {
      const before = this.object(ref);
      if (before === undefined) throw notFound(request);
      return this.#direct.put(request, edit(before));
    });
  }

  delete(ref: ObjectRef, options: DeleteOptions = {}): void {
    const request = this.#admin('delete', ref);
    answered(request, () => this.#writes.delete(request, options));
  }

  /**
   * Deletes a pod as `kubectl delete pod` does: by default with the grace of the pod's spec; a
   * grace of 0 force-deletes.
   */
  deletePod(namespace: string, name: string, gracePeriodSeconds?: number): void {
    this.delete({ resource: apiResources.pods, namespace, name }, { gracePeriodSeconds });
  }

  bindPod(namespace: string, name: string, node: string): StoredObject {
    const request = this.#admin('create', { resource: apiResources.pods, namespace, name });
    return answered(request, () => this.#direct.bind(request, node));
  }

  object(ref: ObjectRef): StoredObject | undefined {
    return this.#store.get(ref.resource, ref.namespace, ref.name);
  }

  /** The objects of a resource, ordered by namespace and name. */
  objects(resource: ApiResource): readonly StoredObject[] {
    return this.#store.all(resource);
  }

  /** Calls the callback synchronously for each change of any object. */
  onChange(subscriber: (change: StoreChange) => void): Disposable {
    return this.#store.subscribe(subscriber);
  }

  get version(): string {
    return String(this.#store.version);
  }

  setFaults(faults: ApiFaultPlan | undefined): void {
    this.#faults = faults ?? noApiFaults;
  }

  /** How often each kind of fault was injected into calls and watches. */
  faultsStruck(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#struck);
  }

  /**
   * Makes the server unreachable. `refusing` simulates a server that is down: pending operations
   * are lost. `silent` simulates a network that drops all packets: calls end at their deadline, and
   * watches when the client notices.
   */
  goAway(how: 'refusing' | 'silent' = 'refusing'): void {
    this.#parts.gate.goAway(how);
    if (how === 'refusing') {
      this.cutWatches();
      return;
    }
    this.#watches.silence();
    this.#work.after(silentWatchMs, () => this.#isSilent() && this.cutWatches());
  }

  comeBack(): void {
    const wasSilent = this.#isSilent();
    this.#parts.gate.comeBack();
    if (wasSilent) this.cutWatches();
  }

  /** Breaks the connections of all watches, or of the watches of one resource. */
  cutWatches(resource?: ApiResource): void {
    this.#watches.fail(
      brokenWatch,
      (request) => resource === undefined || request.resource.plural === resource.plural,
    );
  }

  /** Drops the watch history: watches and lists that resume from an older version get a 410. */
  compact(): void {
    this.#store.compact();
  }

  /** The numbers of resources in use: all zero when no client is connected. */
  held(): Readonly<Record<'calls' | 'watches', number>> {
    return { calls: this.#parts.gate.inFlight, watches: this.#watches.size };
  }

  /** Stops the server and releases all watches and timers. */
  close(): void {
    this.goAway('refusing');
    this.#work.abandon();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #isSilent(): boolean {
    return this.#parts.gate.reachability === 'silent';
  }

  #admin(verb: ApiRequest['verb'], ref: ObjectRef): ApiRequest {
    return { user: adminUser, verb, ...ref };
  }

  #latencyMs(): number {
    const { random, latencyMs } = this.#options;
    return latencyMs === undefined ? 0.2 + random.next() * 1.8 : latencyMs(random);
  }

  #newWatches(): Watches {
    const { clock, bookmarkMs = 60_000, streamingLists = 'offered' } = this.#options;
    return new Watches({
      store: this.#store,
      catalogue: this.#catalogue,
      work: this.#work,
      nowMs: () => clock.monotonicMs(),
      latencyMs: () => this.#latencyMs(),
      fault: (event) => this.#noted(this.#faults.event(event)),
      bookmarkMs,
      streamingLists: () => streamingLists,
      maxWaiting,
    });
  }

  #newParts(): ApiServerParts {
    const { clock, tokenSeconds } = this.#options;
    const writes = this.#writes;
    const tokens = new TokenIssuer({ store: this.#store, clock, lifetimeSeconds: tokenSeconds });
    return {
      gate: this.#newGate(),
      store: this.#store,
      reads: new Reads(this.#store, this.#catalogue),
      watches: this.#watches,
      create: (request, object) =>
        reviewed(request, object, this.#options) ??
        this.#signed(request, inOneTurn(writes.create(request, object))),
      post: (request, object) => this.#post(request, object, tokens),
      update: (request, object) => inOneTurn(writes.update(request, object)).object,
      patch: (request, patch: Patch) => inOneTurn(writes.patch(request, patch)),
      delete: (request, options) => void writes.delete(request, options),
    };
  }

  #newGate(): ApiGate {
    const { clock, random, abandonedEffect = 0.5 } = this.#options;
    return new ApiGate({
      clock,
      random,
      work: this.#work,
      abandonedEffect,
      faults: () => this.#faults,
      latencyMs: () => this.#latencyMs(),
      onCall: (request) => this.calls.add(request),
      onFault: (kind) => this.#note(kind),
    });
  }

  #post(request: ApiRequest, object: unknown, tokens: TokenIssuer): unknown {
    const { resource, subresource } = request;
    if (resource.plural === 'serviceaccounts' && subresource === 'token')
      return tokens.issue(request, object);
    if (resource.plural === 'pods' && subresource === 'binding') {
      const { target } = object as { readonly target?: { readonly name?: string } };
      return this.#direct.bind(request, target?.name ?? '');
    }
    throw badRequest(`there is nothing to post to at ${resource.plural}/${subresource}`);
  }

  /** Calls the signer after a delay, so that clients can read the pending request first. */
  #signed(request: ApiRequest, object: StoredObject): StoredObject {
    const { signer } = this.#options;
    if (object.kind !== 'CertificateSigningRequest' || signer === undefined) return object;
    this.#work.after(this.#latencyMs(), () => {
      const verdict = signer(object);
      const ref = { resource: request.resource, name: object.metadata.name };
      if (verdict !== undefined && this.object(ref)?.metadata.uid === object.metadata.uid)
        this.decide(ref.name, verdict);
    });
    return object;
  }

  /** Approves and signs a certificate signing request, or denies it. */
  decide(name: string, verdict: NonNullable<ReturnType<Signer>>): StoredObject {
    const isSigned = 'certificate' in verdict;
    const condition = {
      type: isSigned ? 'Approved' : 'Denied',
      status: 'True',
      reason: 'Simulated',
      message: isSigned ? 'approved' : verdict.denied,
    };
    const certificate = isSigned ? { certificate: Buffer.from(verdict.certificate).toString('base64') } : {};
    return this.change({ resource: apiResources.certificateSigningRequests, name }, (request) => ({
      ...request,
      status: { ...request.status, conditions: [condition], ...certificate },
    }));
  }

  #noted(fault: WatchFault | undefined): WatchFault | undefined {
    if (fault !== undefined) this.#note(`watch-${fault.kind}`);
    return fault;
  }

  #note(kind: ApiFault['kind'] | `watch-${WatchFault['kind']}`): void {
    this.#struck.set(kind, (this.#struck.get(kind) ?? 0) + 1);
  }
}
