import { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type ApiResource, apiResources } from '../../src/api/index.ts';
import { type Clock, collectLogs } from '../../src/lib/index.ts';
import {
  type ApiUser,
  type ObjectReader,
  resourceAccess,
  type StoredObject,
} from '../../src/local-api/api/index.ts';
import type { ClientInfo } from '../../src/local-api/http/server-deps.ts';
import type { TokenClaims, TokenIssuer } from '../../src/local-api/kinds/index.ts';
import {
  createAuthenticator,
  createAuthorizer,
  createRequestSecurity,
  createTokenIssuer,
  type Grant,
  openServerCredentials,
  type ServerCredentials,
} from '../../src/local-api/security/index.ts';
import { type Identity, keyPem, newEcKey } from '../../src/protocols/x509/index.ts';
import { MemoryCredentialFiles } from './memory-authority-files.ts';
import { VirtualClock } from './virtual-clock.ts';

/** An object reader that contains only the objects that a test has put into it. */
export class FewObjects implements ObjectReader {
  readonly #objects = new Map<string, StoredObject>();

  put(resource: ApiResource, namespace: string | undefined, name: string, more: object = {}): StoredObject {
    const { metadata = {}, ...rest } = more as { readonly metadata?: object };
    const object = {
      apiVersion: 'v1',
      kind: resource.kind,
      metadata: { name, namespace, uid: `uid-of-${name}`, ...metadata },
      ...rest,
    } as unknown as StoredObject;
    this.#objects.set(this.#key(resource, namespace, name), object);
    return object;
  }

  remove(resource: ApiResource, namespace: string | undefined, name: string): void {
    this.#objects.delete(this.#key(resource, namespace, name));
  }

  get(resource: ApiResource, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#objects.get(this.#key(resource, namespace, name));
  }

  all(resource: ApiResource, namespace?: string): readonly StoredObject[] {
    const prefix = `${resource.group}/${resource.plural}/${namespace === undefined ? '' : `${namespace}/`}`;
    return [...this.#objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object);
  }

  #key({ group, plural }: ApiResource, namespace: string | undefined, name: string): string {
    return `${group}/${plural}/${namespace ?? ''}/${name}`;
  }
}

/**
 * Authentication and authorization with some users, and a node `n1` that runs the pod `web` of the
 * service account `builder`.
 */
export class SecurityRig {
  readonly objects = new FewObjects();
  readonly authorities: ServerCredentials;
  readonly tokens: TokenIssuer;
  readonly security: ReturnType<typeof createRequestSecurity>;
  readonly judge: ReturnType<typeof createAuthorizer>;
  readonly logs: ReturnType<typeof collectLogs>;
  readonly #clock: Clock;
  #issued = 0;

  private constructor(clock: Clock, authorities: ServerCredentials, grants: readonly Grant[]) {
    this.#clock = clock;
    this.authorities = authorities;
    this.logs = collectLogs(clock);
    this.tokens = createTokenIssuer({ keys: authorities.tokenKeys, objects: this.objects, clock });
    this.judge = createAuthorizer({ objects: this.objects, grants });
    const authenticator = createAuthenticator({
      authority: () => authorities.authorityCertificate,
      tokens: this.tokens,
      clock,
    });
    this.security = createRequestSecurity({ authenticator, authorizer: this.judge, log: this.logs.logger });
    this.#fill();
  }

  static async open(clock: Clock = new VirtualClock(), grants: readonly Grant[] = []): Promise<SecurityRig> {
    return new SecurityRig(clock, await someAuthorities(clock), grants);
  }

  #fill(): void {
    const { pods, nodes, secrets, serviceAccounts, persistentVolumeClaims } = apiResources;
    for (const node of ['n1', 'n2']) this.objects.put(nodes, undefined, node);
    this.objects.put(serviceAccounts, 'shop', 'builder');
    for (const secret of ['used', 'other']) this.objects.put(secrets, 'shop', secret);
    const volumes = [
      { name: 's', secret: { secretName: 'used' } },
      { name: 'c', persistentVolumeClaim: { claimName: 'data' } },
    ];
    const spec = { nodeName: 'n1', serviceAccountName: 'builder', volumes };
    this.objects.put(pods, 'shop', 'web', { spec });
    this.objects.put(pods, 'shop', 'elsewhere', { spec: { nodeName: 'n2' } });
    this.objects.put(persistentVolumeClaims, 'shop', 'data', { spec: { volumeName: 'pv1' } });
  }

  claims(more: Partial<TokenClaims> = {}): TokenClaims {
    const now = Math.floor(this.#clock.now() / 1_000);
    return {
      iss: this.tokens.issuer,
      sub: 'system:serviceaccount:shop:builder',
      aud: [this.tokens.issuer],
      exp: now + 3_607,
      iat: now,
      nbf: now,
      jti: String(++this.#issued),
      'kubernetes.io': {
        namespace: 'shop',
        serviceaccount: { name: 'builder', uid: 'uid-of-builder' },
        pod: { name: 'web', uid: 'uid-of-web' },
        node: { name: 'n1', uid: 'uid-of-n1' },
      },
      ...more,
    };
  }

  /** Authenticates a client. Returns the user, or the status code of the rejection. */
  async who(facts: Partial<ClientInfo>): Promise<ApiUser | number> {
    const whole = { certificate: undefined, headers: {}, address: '127.0.0.1', ...facts };
    try {
      return await this.security.authenticate(whole, new AbortController().signal);
    } catch (error) {
      return (error as { readonly status?: { readonly code?: number } }).status?.code ?? 0;
    }
  }

  async may(user: ApiUser, options: Parameters<typeof resourceAccess>[0]): Promise<boolean> {
    const attributes = resourceAccess({ verb: 'get', version: 'v1', resource: 'pods', ...options });
    return (await this.security.authorize(user, attributes, new AbortController().signal)).allowed;
  }
}

/** Creates the server's credentials in memory, for the node `n1`. */
export async function someAuthorities(clock: Clock): Promise<ServerCredentials> {
  return await openServerCredentials({
    directory: '/api',
    nodeName: 'n1',
    hostnames: () => [],
    addresses: () => [],
    clock,
    files: new MemoryCredentialFiles(),
    log: collectLogs(clock).logger,
  });
}

export interface ClientPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Issues a client certificate whose validity begins and ends at the given offsets from now, in
 * milliseconds.
 */
export function clientPair(
  authorities: ServerCredentials,
  subject: Pick<Identity, 'commonName' | 'organizations'>,
  nowMs: number,
  [fromMs, untilMs]: readonly [number, number] = [-60_000, 3_600_000],
): ClientPair {
  const key = newEcKey();
  const cert = authorities.authority.issue({
    identity: { ...subject, dnsNames: [], ips: [] },
    key,
    notBeforeMs: nowMs + fromMs,
    notAfterMs: nowMs + untilMs,
    uses: ['digital-signature'],
    extendedUses: ['client-auth'],
  });
  return { cert, key: keyPem(key) };
}

export function shownPair({ cert }: Pick<ClientPair, 'cert'>): Pick<ClientInfo, 'certificate'> {
  return { certificate: { certificate: new X509Certificate(cert), untrusted: undefined } };
}

export function shownToken(token: string): { readonly headers: IncomingHttpHeaders } {
  return { headers: { authorization: `Bearer ${token}` } };
}
