import type { ApiResource, JsonObject } from '../../src/api/index.ts';
import { decodeJson, KindTable, tableNameOf } from '../../src/kinds/index.ts';
import { collectLogs } from '../../src/lib/index.ts';
import type {
  AccessAttributes,
  AccessDecision,
  Durability,
  StoredObject,
} from '../../src/local-api/api/index.ts';
import {
  type ControllerDeps,
  type Controllers,
  createKinds,
  type SigningParameters,
  type TokenClaims,
} from '../../src/local-api/kinds/index.ts';
import { createCertificateSigner } from '../../src/local-api/security/index.ts';
import { createCertificateRequest, type Identity, newEcKey } from '../../src/protocols/x509/index.ts';
import { type CallOptions, LocalApiRig, refusedWith } from './local-api-rig.ts';
import { noDurability } from './no-durability.ts';
import { settle } from './virtual-clock.ts';

/** Builds a certificate signing request, encoded as in the field `spec.request`. */
export function requestFor(identity: Partial<Identity>): string {
  const whole: Identity = { commonName: '', organizations: [], dnsNames: [], ips: [], ...identity };
  return Buffer.from(createCertificateRequest(whole, newEcKey())).toString('base64');
}

/** Builds an object of this name with additional fields. */
export function named(name: string, more: JsonObject = {}): JsonObject {
  return { metadata: { name }, ...more };
}

/**
 * The validation and defaults of all kinds except pods, in an embedded API without a network;
 * signers and issuers are simple fakes.
 */
export class KindsRig implements Disposable {
  readonly rig: LocalApiRig;
  readonly orders: SigningParameters[] = [];
  readonly claims: TokenClaims[] = [];
  readonly asked: AccessAttributes[] = [];
  readonly #kinds;
  readonly #table = new KindTable();
  readonly #running = new AbortController();

  constructor(durability: Durability = noDurability()) {
    this.#kinds = createKinds({
      signer: {
        ...createCertificateSigner({ issue: () => '' }),
        sign: (order) => {
          this.orders.push(order);
          return `-----BEGIN CERTIFICATE-----\n${order.notAfter}\n-----END CERTIFICATE-----\n`;
        },
      },
      tokens: {
        issuer: 'https://issuer',
        issue: (claims) => {
          this.claims.push(claims);
          return `token-${this.claims.length}`;
        },
        verify: (token) =>
          token === 'good'
            ? { authenticated: true }
            : { authenticated: false, error: 'invalid bearer token' },
      },
      authorizer: {
        authorize: (user, attributes): AccessDecision => {
          this.asked.push(attributes);
          return { allowed: user.groups.includes('system:masters') };
        },
        rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
      },
      serviceRange: '10.96.0.0/24',
    });
    const { strategies: rules, views } = this.#kinds;
    this.rig = new LocalApiRig({ rules, views, durability });
  }

  get warnings(): readonly string[] {
    return this.rig.warnings;
  }

  /** Decodes an object like the HTTP front end: drops unknown fields and sets defaults. */
  decoded({ group, kind }: ApiResource, body: JsonObject): JsonObject {
    return decodeJson<JsonObject>(this.#table, tableNameOf(group, kind), body).value;
  }

  create(resource: ApiResource, body: JsonObject, options: CallOptions = {}): Promise<StoredObject> {
    return this.rig.object('create', resource, { ...options, body: this.decoded(resource, body) });
  }

  /** Returns the error message of a rejected creation. */
  async refusal(resource: ApiResource, body: JsonObject): Promise<string> {
    return (await refusedWith(this.create(resource, body), 422)).message;
  }

  update(resource: ApiResource, body: StoredObject, options: CallOptions = {}): Promise<StoredObject> {
    const { name, namespace } = body.metadata;
    const directory = namespace === undefined ? {} : { namespace };
    return this.rig.object('update', resource, {
      name,
      ...directory,
      ...options,
      body: this.decoded(resource, body),
    });
  }

  get(resource: ApiResource, name: string, namespace?: string): StoredObject | undefined {
    const directory = resource.scope === 'cluster' ? undefined : (namespace ?? 'default');
    return this.rig.store.get(resource, directory, name);
  }

  /** Starts the background controllers of the server. */
  run(needs: Partial<ControllerDeps> = {}): Controllers {
    const { api, catalogue, clock } = this.rig;
    const created = this.#kinds.createControllers({
      context: api.context,
      log: collectLogs(clock).logger,
      entries: catalogue.all,
      localNode: 'n1',
      rootCertificates: () => 'ROOT',
      serverEndpoint: { kind: 'unreachable', port: 6443 },
      ...needs,
    });
    created.prepare();
    for (const { run } of created.controllers) run(this.#running.signal).catch(() => {});
    return created;
  }

  /** Completes all due work, and work that becomes due within the given time. */
  async settle(ms = 0): Promise<void> {
    await settle();
    await this.rig.clock.advance(ms);
    await settle();
  }

  [Symbol.dispose](): void {
    this.#running.abort();
    this.rig[Symbol.dispose]();
  }
}
