import {
  type ApiClient,
  type ApiObject,
  type ApiResource,
  apiResources,
  apiVersionOf,
  isApiCode,
} from '../api/index.ts';
import {
  type Clock,
  describeError,
  KubelingError,
  type Logger,
  type Random,
  randomInt,
} from '../lib/index.ts';

/** The methods of the API client that this package needs. */
export type CsrApi = Pick<ApiClient, 'create' | 'get' | 'list' | 'watch'>;

/** The fields of a CertificateSigningRequest that are used here. Bytes are base64. */
export interface CsrObject extends ApiObject {
  readonly spec?: {
    readonly request?: string | undefined;
    readonly signerName?: string | undefined;
    readonly usages?: readonly string[] | undefined;
  };
  readonly status?:
    | {
        readonly conditions?:
          | readonly {
              readonly type: string;
              readonly reason?: string | undefined;
              readonly message?: string | undefined;
            }[]
          | undefined;
        readonly certificate?: string | undefined;
      }
    | undefined;
}

export const signers = {
  client: 'kubernetes.io/kube-apiserver-client-kubelet',
  server: 'kubernetes.io/kubelet-serving',
} as const;

export interface CsrContent {
  /** The name of the request; by default the server generates one with the prefix `csr-`. */
  readonly name?: string | undefined;
  readonly requestPem: string;
  readonly signerName: string;
  readonly usages: readonly string[];
}

/** Identifies one certificate signing request at the API server. */
export interface CsrRef {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
}

const kinds: readonly ApiResource[] = ['v1', 'v1beta1'].map((version) => ({
  ...apiResources.certificateSigningRequests,
  version,
}));

/** Creates the request with v1 of the API, or with v1beta1 on a server without v1. */
export async function createSigningRequest(
  api: CsrApi,
  content: CsrContent,
  signal: AbortSignal,
): Promise<CsrRef> {
  return await inFirstVersion(async (resource) => {
    const created = await api.create<CsrObject>({ resource }, csrObject(resource, content), signal);
    return refOf(created, resource);
  });
}

/** Reads the signing request with this name; rejects with API_NOT_FOUND if it does not exist. */
export async function getSigningRequest(
  api: CsrApi,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly ref: CsrRef; readonly object: CsrObject }> {
  return await inFirstVersion(async (resource) => {
    const object = await api.get<CsrObject>({ resource, name }, {}, signal);
    return { ref: refOf(object, resource), object };
  });
}

async function inFirstVersion<T>(call: (resource: ApiResource) => Promise<T>): Promise<T> {
  const [newest, older] = kinds as [ApiResource, ApiResource];
  try {
    return await call(newest);
  } catch (error) {
    if (!isApiCode(error, 'API_NOT_FOUND')) throw error;
    // If v1beta1 fails too, reports the error of v1: a server with v1 has no v1beta1.
    return await call(older).catch((second) => {
      throw isApiCode(second, 'API_NOT_FOUND') ? error : second;
    });
  }
}

function csrObject(resource: ApiResource, content: CsrContent): ApiObject {
  const { name, requestPem, signerName, usages } = content;
  const object = {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: name === undefined ? { generateName: 'csr-' } : { name },
    spec: { request: Buffer.from(requestPem).toString('base64'), signerName, usages },
  };
  return object;
}

function refOf({ metadata }: CsrObject, { version }: ApiResource): CsrRef {
  if (metadata?.name === undefined || metadata.uid === undefined) {
    throw new KubelingError(
      'API_BAD_ANSWER',
      'Cannot use a certificate signing request without a name or uid',
    );
  }
  return { name: metadata.name, uid: metadata.uid, version };
}

/** The state of a certificate signing request. */
export type CsrState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'approved' }
  | { readonly kind: 'issued'; readonly certificatePem: string };

/**
 * Returns the state of the request. Throws CERTIFICATE_DENIED or CERTIFICATE_NOT_ISSUED if it will
 * never be issued.
 */
function csrState(name: string, { status }: CsrObject): CsrState {
  const conditions = status?.conditions ?? [];
  for (const { type, reason = '', message = '' } of conditions) {
    const why = [reason, message].filter((text) => text !== '').join(': ') || 'no reason given';
    if (type === 'Denied') throw denied(name, why);
    if (type === 'Failed') throw notIssued(name, `the signer failed: ${why}`);
  }
  if (!conditions.some(({ type }) => type === 'Approved')) return { kind: 'pending' };
  const { certificate = '' } = status ?? {};
  if (certificate === '') return { kind: 'approved' };
  return { kind: 'issued', certificatePem: Buffer.from(certificate, 'base64').toString('utf8') };
}

export interface CsrWaitDeps {
  readonly api: CsrApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Called with the state of the signing request after each observation. */
  readonly onState?: ((state: CsrState) => void) | undefined;
}

const watchSeconds = { least: 300, spread: 300 };
const firstRetryMs = 1_000;
const lastRetryMs = 30_000;

/**
 * Waits until the request is issued and returns the certificates in PEM. Rejects when it is denied,
 * failed, deleted or replaced. Failures of single reads are retried: the caller sets the deadline.
 */
export async function waitForCertificate(
  deps: CsrWaitDeps,
  ref: CsrRef,
  signal: AbortSignal,
): Promise<string> {
  for (let failures = 0; ; ) {
    try {
      const issued = await watchUntilIssued(deps, ref, signal);
      if (issued !== undefined) return issued;
      failures = 0;
    } catch (error) {
      signal.throwIfAborted();
      if (isFinal(error)) throw error;
      failures++;
      deps.log.info('Failed to read certificate signing request', {
        csr: ref.name,
        err: describeError(error),
      });
    }
    await deps.clock.sleep(Math.min(firstRetryMs * 2 ** Math.max(0, failures - 1), lastRetryMs), signal);
  }
}

async function watchUntilIssued(
  deps: CsrWaitDeps,
  ref: CsrRef,
  signal: AbortSignal,
): Promise<string | undefined> {
  const resource = { ...apiResources.certificateSigningRequests, version: ref.version };
  const query = { resource, fieldSelector: `metadata.name=${ref.name}` };
  const list = await deps.api.list<CsrObject>(query, signal);
  const [object] = list.items;
  if (object === undefined) throw notIssued(ref.name, 'it was deleted');
  const issued = issuedCertificate(deps, ref, object);
  if (issued !== undefined) return issued;
  const timeoutSeconds = watchSeconds.least + randomInt(deps.random, watchSeconds.spread);
  const { resourceVersion } = list.metadata;
  const watch = { ...query, begin: 'at-version', resourceVersion, timeoutSeconds } as const;
  for await (const event of deps.api.watch<CsrObject>(watch, signal)) {
    if (event.type === 'BOOKMARK') continue;
    if (event.type === 'DELETED') throw notIssued(ref.name, 'it was deleted');
    const later = issuedCertificate(deps, ref, event.object);
    if (later !== undefined) return later;
  }
  return undefined;
}

function issuedCertificate(deps: CsrWaitDeps, ref: CsrRef, object: CsrObject): string | undefined {
  if (object.metadata?.uid !== ref.uid) throw notIssued(ref.name, 'it was replaced by another one');
  const state = csrState(ref.name, object);
  deps.onState?.(state);
  return state.kind === 'issued' ? state.certificatePem : undefined;
}

function isFinal(error: unknown): boolean {
  return isApiCode(error, 'CERTIFICATE_DENIED', 'CERTIFICATE_NOT_ISSUED');
}

function denied(name: string, why: string): KubelingError {
  return new KubelingError(
    'CERTIFICATE_DENIED',
    `Cannot get a certificate as the certificate signing request ${name} was denied: ${why}`,
    { details: { csr: name } },
  );
}

function notIssued(name: string, why: string): KubelingError {
  return new KubelingError(
    'CERTIFICATE_NOT_ISSUED',
    `Cannot get a certificate by the certificate signing request ${name} as ${why}`,
    { details: { csr: name } },
  );
}
