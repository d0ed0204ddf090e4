import type { KeyObject } from 'node:crypto';
import {
  type ApiObject,
  apiError,
  type Collection,
  type GetOptions,
  type ListQuery,
  type ObjectRef,
  type WatchEvent,
  type WatchQuery,
} from '../../src/api/index.ts';
import type { CsrApi, CsrObject } from '../../src/certificates/signing-request.ts';
import { type Clock, onAbort } from '../../src/lib/index.ts';
import {
  createCertificate,
  type Identity,
  newEcKey,
  readCertificateRequest,
} from '../../src/protocols/x509/index.ts';

/** The certificate authority of a test. */
export class TestAuthority {
  readonly key: KeyObject = newEcKey();
  readonly subject = { commonName: 'test-authority', organizations: ['tests'] };
  readonly pem: string;

  constructor(nowMs: number) {
    this.pem = createCertificate(
      {
        identity: { ...this.subject, dnsNames: [], ips: [] },
        key: this.key,
        notBeforeMs: nowMs - 86_400_000,
        notAfterMs: nowMs + 10 * 365 * 86_400_000,
        uses: ['certificate-sign'],
        extendedUses: [],
        role: 'authority',
      },
      this,
    );
  }

  issue(
    identity: Identity,
    key: KeyObject,
    time: { readonly fromMs: number; readonly toMs: number },
  ): string {
    return createCertificate(
      {
        identity,
        key,
        notBeforeMs: time.fromMs,
        notAfterMs: time.toMs,
        uses: ['digital-signature'],
        extendedUses: ['server-auth', 'client-auth'],
        role: 'leaf',
      },
      this,
    );
  }
}

interface SigningApiOptions {
  readonly clock: Clock;
  readonly lifeMs?: number;
  /** Decides on a request when it arrives; no decision is made if undefined. */
  readonly policy?: 'issue' | 'leave';
  /** The only version of certificates.k8s.io that the server supports. */
  readonly version?: 'v1' | 'v1beta1';
}

type Condition = 'Approved' | 'Denied' | 'Failed';

interface StoredCsr extends CsrObject {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly spec: {
    readonly request: string;
    readonly signerName: string;
    readonly usages: readonly string[];
  };
}

/**
 * The certificate signing requests of a simulated API server, which signs them with its CA when the
 * test requests it.
 */
export class SigningApi implements CsrApi {
  readonly authority: TestAuthority;
  /** Returns all requests by name, in the order of creation. */
  readonly created: StoredCsr[] = [];
  /** Errors for the next calls of a kind, in order. */
  readonly failures: { create: unknown[]; list: unknown[]; watch: unknown[] } = {
    create: [],
    list: [],
    watch: [],
  };
  readonly calls: string[] = [];
  policy: 'issue' | 'leave';
  lifeMs: number;
  /** Issues the certificate for a request, as the signer does. */
  shape: (identity: Identity) => Identity = (identity) => identity;
  readonly #clock: Clock;
  readonly #version: string;
  readonly #objects = new Map<string, StoredCsr>();
  readonly #watchers = new Set<(event: WatchEvent<CsrObject> | undefined) => void>();
  #sequence = 0;

  constructor({ clock, lifeMs = 86_400_000, policy = 'leave', version = 'v1' }: SigningApiOptions) {
    this.#clock = clock;
    this.lifeMs = lifeMs;
    this.policy = policy;
    this.#version = version;
    this.authority = new TestAuthority(clock.now());
  }

  async create<T extends ApiObject>(at: Collection, object: ApiObject, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    this.calls.push(`create ${at.resource.version}`);
    this.#check(at, 'create');
    const meta = object.metadata as { readonly name?: string; readonly generateName?: string };
    const name = meta.name ?? `${meta.generateName ?? ''}${++this.#sequence}`;
    if (this.#objects.has(name))
      throw apiError({ what: 'create csr', status: 409, apiStatus: { reason: 'AlreadyExists' } });
    const created = {
      ...object,
      metadata: { name, uid: `uid-${name}`, resourceVersion: this.#nextVersion() },
    } as StoredCsr;
    this.created.push(created);
    this.#objects.set(name, created);
    if (this.policy === 'issue') this.approve(name);
    return created as unknown as T;
  }

  async get<T extends ApiObject>(ref: ObjectRef, _options: GetOptions, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    this.calls.push(`get ${ref.resource.version}`);
    const object = ref.resource.version === this.#version ? this.#objects.get(ref.name) : undefined;
    if (object === undefined) throw apiError({ what: `get csr ${ref.name}`, status: 404, apiStatus: {} });
    return object as unknown as T;
  }

  async list<T extends ApiObject>(query: ListQuery, signal: AbortSignal) {
    signal.throwIfAborted();
    this.calls.push(`list ${query.fieldSelector}`);
    this.#check(query, 'list');
    const object = this.#objects.get(nameIn(query.fieldSelector));
    const items = (object === undefined ? [] : [object]) as unknown as T[];
    return { metadata: { resourceVersion: String(this.#sequence) }, items };
  }

  async *watch<T extends ApiObject>(query: WatchQuery, signal: AbortSignal): AsyncIterable<WatchEvent<T>> {
    this.calls.push(`watch ${query.fieldSelector}`);
    this.#check(query, 'watch');
    const queue: (WatchEvent<CsrObject> | undefined)[] = [];
    let wake = () => {};
    const told = (event: WatchEvent<CsrObject> | undefined) => {
      queue.push(event);
      wake();
    };
    this.#watchers.add(told);
    using _abort = onAbort(signal, () => wake());
    try {
      for (;;) {
        signal.throwIfAborted();
        while (queue.length > 0) {
          const event = queue.shift();
          if (event === undefined) return;
          if (event.object.metadata?.name === nameIn(query.fieldSelector)) yield event as WatchEvent<T>;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      this.#watchers.delete(told);
    }
  }

  get watching(): number {
    return this.#watchers.size;
  }

  /** Ends every watch, as an API server does periodically. */
  endWatches(): void {
    for (const told of [...this.#watchers]) told(undefined);
  }

  /** Approves the request and issues its certificate. */
  approve(name: string): void {
    const stored = this.#must(name);
    const request = readCertificateRequest(Buffer.from(stored.spec.request, 'base64').toString());
    const nowMs = this.#clock.now();
    const pem = this.authority.issue(this.shape(request.identity), request.publicKey, {
      fromMs: nowMs,
      toMs: nowMs + this.lifeMs,
    });
    this.put(name, { conditions: [{ type: 'Approved' }], certificate: Buffer.from(pem).toString('base64') });
  }

  condition(name: string, type: Condition, message = ''): void {
    this.put(name, { conditions: [{ type, reason: 'Tested', message }] });
  }

  put(name: string, status: NonNullable<CsrObject['status']>): void {
    const old = this.#must(name);
    const metadata = { ...old.metadata, resourceVersion: this.#nextVersion() };
    const changed: StoredCsr = { ...old, metadata, status };
    this.#objects.set(name, changed);
    for (const told of [...this.#watchers]) told({ type: 'MODIFIED', object: changed });
  }

  delete(name: string): void {
    const object = this.#must(name);
    this.#objects.delete(name);
    for (const told of [...this.#watchers]) told({ type: 'DELETED', object });
  }

  replaceByAnother(name: string): void {
    const old = this.#must(name);
    const object = { ...old, metadata: { ...old.metadata, uid: `another ${old.metadata.uid}` } };
    this.#objects.set(name, object);
    for (const told of [...this.#watchers]) told({ type: 'MODIFIED', object });
  }

  #must(name: string): StoredCsr {
    const object = this.#objects.get(name);
    if (object === undefined) throw new Error(`There is no request ${name}`);
    return object;
  }

  #nextVersion(): string {
    return String(++this.#sequence);
  }

  #check(at: Collection, kind: keyof SigningApi['failures']): void {
    const failure = this.failures[kind].shift();
    if (failure !== undefined) throw failure;
    if (at.resource.version !== this.#version) {
      throw apiError({
        what: `${kind} csr`,
        status: 404,
        apiStatus: { message: 'the server could not find it' },
      });
    }
  }
}

function nameIn(selector: string | undefined): string {
  return selector?.replace('metadata.name=', '') ?? '';
}
