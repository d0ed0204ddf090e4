import { type ApiObject, apiResources, type JsonObject } from '../../../src/api/index.ts';
import { apiTime, type Clock, instant } from '../../../src/lib/index.ts';
import type { VersionedStore } from '../../../src/local-api/index.ts';
import {
  type ApiRequest,
  conflict,
  forbiddenForUser,
  invalid,
  nodeNameOfUser,
  notFound,
  referencesOf,
  type StoredObject,
  toWireObject,
} from '../../../src/local-api/index.ts';

interface TokenSpec {
  readonly audiences?: readonly string[];
  readonly expirationSeconds?: number;
  readonly boundObjectRef?: {
    readonly apiVersion?: string;
    readonly kind?: string;
    readonly name?: string;
    readonly uid?: string;
  };
}

export interface TokenIssuerOptions {
  readonly store: VersionedStore;
  readonly clock: Clock;
  /**
   * Determines the actual lifetime of a token from the requested one; by default both are equal.
   */
  readonly lifetimeSeconds?: ((expected: number) => number) | undefined;
}

const shortestSeconds = 600;
const defaultSeconds = 3_600;
const defaultAudience = 'https://kubernetes.default.svc';

/** Issues service account tokens with readable content and without a real signature. */
export class TokenIssuer {
  readonly #options: TokenIssuerOptions;
  #issued = 0;

  constructor(options: TokenIssuerOptions) {
    this.#options = options;
  }

  issue(request: ApiRequest, body: unknown): ApiObject {
    const { store } = this.#options;
    const account = store.get(apiResources.serviceAccounts, request.namespace, request.name ?? '');
    if (account === undefined) throw notFound(request);
    const spec = (toWireObject(body)['spec'] ?? {}) as TokenSpec;
    const seconds = spec.expirationSeconds ?? defaultSeconds;
    if (seconds < shortestSeconds)
      throw invalid(request, [
        {
          reason: 'FieldValueInvalid',
          field: 'spec.expirationSeconds',
          message: `Invalid value: ${seconds}: may not specify a duration less than 10 minutes`,
        },
      ]);
    const pod = this.#boundPod(request, account, spec);
    return this.#answer(request, account, spec, pod, this.#options.lifetimeSeconds?.(seconds) ?? seconds);
  }

  #boundPod(request: ApiRequest, account: StoredObject, spec: TokenSpec): StoredObject | undefined {
    const { boundObjectRef: ref } = spec;
    const node = nodeNameOfUser(request.user);
    const isPod = ref?.apiVersion === 'v1' && ref.kind === 'Pod' && (ref.name ?? '') !== '';
    if (node !== undefined && !isPod) throw forbiddenForUser(request, 'requested token not bound to a pod');
    if (!isPod) return undefined;
    if (node !== undefined && ref.uid === undefined)
      throw forbiddenForUser(request, 'requested token with a pod binding without a uid');
    const pods = apiResources.pods;
    const pod = this.#options.store.get(pods, request.namespace, ref.name ?? '');
    if (pod === undefined) throw notFound({ resource: pods, name: ref.name });
    if (ref.uid !== undefined && ref.uid !== pod.metadata.uid)
      throw conflict(
        request,
        `the UID in the bound object reference (${ref.uid}) does not match the UID in record`,
      );
    if (node !== undefined) this.#checkNode(request, node, account, pod, spec);
    return pod;
  }

  #checkNode(
    request: ApiRequest,
    node: string,
    account: StoredObject,
    pod: StoredObject,
    spec: TokenSpec,
  ): void {
    if (pod.spec?.['nodeName'] !== node)
      throw forbiddenForUser(request, 'requested token bound to a pod scheduled on a different node');
    const { serviceAccount = 'default', audiences, drivers } = referencesOf(pod);
    if (serviceAccount !== account.metadata.name)
      throw forbiddenForUser(
        request,
        `requested token bound to a pod of service account "${serviceAccount}"`,
      );
    const [expected = '', ...more] = spec.audiences ?? [];
    if (more.length > 0) throw forbiddenForUser(request, 'may only request 0 or 1 audiences');
    const ofDrivers = [...drivers].flatMap((driver) => this.#audiencesOf(driver));
    if (!audiences.has(expected) && !ofDrivers.includes(expected))
      throw forbiddenForUser(request, `audience "${expected}" not found in pod spec volume`);
  }

  #audiencesOf(driver: string): readonly string[] {
    const found = this.#options.store.get(apiResources.csiDrivers, undefined, driver);
    const requests = (found?.spec?.['tokenRequests'] ?? []) as readonly { readonly audience?: string }[];
    return requests.map(({ audience = '' }) => audience);
  }

  #answer(
    request: ApiRequest,
    account: StoredObject,
    spec: TokenSpec,
    pod: StoredObject | undefined,
    seconds: number,
  ): ApiObject {
    const now = this.#options.clock.now();
    const audiences = spec.audiences ?? [defaultAudience];
    const expiresAt = instant(now + seconds * 1_000);
    const { namespace, name, uid } = account.metadata;
    const claims: JsonObject = {
      aud: audiences,
      exp: Math.floor(expiresAt / 1_000),
      iat: Math.floor(now / 1_000),
      iss: defaultAudience,
      jti: String(++this.#issued),
      sub: `system:serviceaccount:${namespace}:${name}`,
      'kubernetes.io': {
        namespace,
        serviceaccount: { name, uid },
        ...(pod === undefined ? {} : { pod: { name: pod.metadata.name, uid: pod.metadata.uid } }),
      },
    };
    const response = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: request.name, namespace: request.namespace, creationTimestamp: apiTime(now) },
      spec: { ...spec, audiences, expirationSeconds: seconds },
      status: { token: unsigned(claims), expirationTimestamp: apiTime(expiresAt) },
    };
    return toWireObject(response) as ApiObject;
  }
}

/**
 * A token with three parts like a JSON web token; the last one is a fixed text instead of a
 * signature.
 */
function unsigned(claims: JsonObject): string {
  const parts = [{ alg: 'none', typ: 'JWT' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  return [...parts, 'simulated'].join('.');
}
