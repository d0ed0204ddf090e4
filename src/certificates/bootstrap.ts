import { createHash, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { isApiCode } from '../api/index.ts';
import { apiTime, describeError, jitter, KubelingError, type Random, withDeadline } from '../lib/index.ts';
import {
  createCertificateRequest,
  identityKey,
  isExpired,
  type KeyPair,
  keyPem,
  newEcKey,
  publicKeyDer,
  readCertificateRequest,
  readLeaves,
  readPrivateKey,
  type Subject,
} from '../protocols/x509/index.ts';
import { CertificateStore } from './certificate-store.ts';
import {
  type ClientAccessDeps,
  type ClientAccessSettings,
  chooseKubeconfig,
  readBootstrap,
  writeNodeKubeconfig,
} from './client-access.ts';
import { clientPrefix } from './client-certificate.ts';
import { clientIdentity } from './node-identity.ts';
import {
  type CsrApi,
  type CsrObject,
  type CsrRef,
  createSigningRequest,
  getSigningRequest,
  signers,
  waitForCertificate,
} from './signing-request.ts';

export interface BootstrapDeps extends ClientAccessDeps {
  readonly random: Random;
  /**
   * Creates the client with the credentials of the bootstrap kubeconfig; called once, when the
   * client is first needed.
   */
  readonly connect: () => Promise<BootstrapApi>;
}

export interface BootstrapApi {
  readonly api: CsrApi;
  /** Requests the health endpoint of the server; rejects while it is unreachable. */
  readonly isHealthy: (signal: AbortSignal) => Promise<void>;
}

export interface BootstrapSettings extends ClientAccessSettings {
  readonly nodeName: string;
}

const temporaryKey = 'kubelet-client.key.tmp';
const longestServerWaitMs = 60_000;
const serverRoundMs = 2_000;
const longestAnswerMs = 1_000;
const longestCsrWaitMs = 3_600_000;

/**
 * Obtains a client certificate with the bootstrap kubeconfig and writes the kubeconfig before
 * anything else, for a node that does not rotate certificates. Does nothing if the kubeconfig is
 * valid. The key is stored until the certificate is issued, so that a restarted kubelet waits for
 * the same request.
 */
export async function bootstrapClientCertificate(
  settings: BootstrapSettings,
  deps: BootstrapDeps,
  signal: AbortSignal,
): Promise<'not-needed' | KeyPair> {
  const choice = await chooseKubeconfig(settings, deps);
  if (choice.use === 'it') return 'not-needed';
  const bootstrap = await readBootstrap(settings, choice.why, deps);
  deps.log.info('Requesting client certificate with bootstrap kubeconfig', { why: choice.why });
  const store = await openStore(settings, deps);
  const { api, isHealthy } = await deps.connect();
  await waitForServer(isHealthy, deps, signal);
  const pair = await requestAndStore({ settings, deps, store, api }, signal);
  await writeNodeKubeconfig(settings, bootstrap, deps);
  return pair;
}

function openStore({ certDirectory }: BootstrapSettings, { files, clock, log }: BootstrapDeps) {
  return CertificateStore.open({ files, clock, log, directory: certDirectory, prefix: clientPrefix });
}

/**
 * Waits until the server is healthy, for a limited time, because the node may not be allowed to
 * access the health endpoint.
 */
async function waitForServer(
  isHealthy: BootstrapApi['isHealthy'],
  { clock, random, log }: BootstrapDeps,
  signal: AbortSignal,
): Promise<void> {
  const endMs = clock.monotonicMs() + longestServerWaitMs;
  while (clock.monotonicMs() < endMs) {
    try {
      return await withDeadline({ clock, ms: longestAnswerMs, what: 'ask /healthz' }, isHealthy, signal);
    } catch (error) {
      signal.throwIfAborted();
      log.info('Waiting for API server', { err: describeError(error) });
    }
    await clock.sleep(jitter(random, serverRoundMs, 0.2), signal);
  }
  log.warn('API server not healthy within a minute, requesting certificate anyway');
}

interface Bootstrapping {
  readonly settings: BootstrapSettings;
  readonly deps: BootstrapDeps;
  readonly store: CertificateStore;
  readonly api: CsrApi;
}

async function requestAndStore(job: Bootstrapping, signal: AbortSignal): Promise<KeyPair> {
  const { deps, store, settings } = job;
  const keyPath = join(settings.certDirectory, temporaryKey);
  const { key, ref } = await requestOnce(job, keyPath, signal);
  const certificate = await withDeadline(
    {
      clock: deps.clock,
      ms: longestCsrWaitMs,
      what: `get a certificate by the certificate signing request ${ref.name}`,
    },
    (limited) => waitForCertificate({ ...deps, api: job.api }, ref, limited),
    signal,
  );
  const pair = await store.update(certificate, keyPem(key));
  await deps.files.remove(keyPath).catch((error) => deps.log.error('Failed to remove stored key', error));
  return pair;
}

/**
 * Requests a certificate once. An unusable request of the same name, for example with an expired
 * certificate, is replaced by one with a new key.
 */
async function requestOnce(
  { settings, deps, store, api }: Bootstrapping,
  keyPath: string,
  signal: AbortSignal,
): Promise<{ readonly key: KeyObject; readonly ref: CsrRef }> {
  const { files, log, clock } = deps;
  const key = await keptKey(files, keyPath, await store.load());
  const first = await ensureRequest({ api, key, nodeName: settings.nodeName, nowMs: clock.now() }, signal);
  if ('ref' in first) return { key, ref: first.ref };
  log.warn(`Requesting certificate with a new key: ${first.unusable}`);
  const newKey = newEcKey();
  await files.replace(keyPath, keyPem(newKey), 0o600);
  const second = await ensureRequest(
    { api, key: newKey, nodeName: settings.nodeName, nowMs: clock.now() },
    signal,
  );
  if ('ref' in second) return { key: newKey, ref: second.ref };
  throw new KubelingError('CERTIFICATE_NOT_ISSUED', `Cannot request a certificate as ${second.unusable}`);
}

/**
 * Returns the key of the existing certificate, else the key stored by an earlier attempt, else a
 * new key, which is stored.
 */
async function keptKey(
  files: BootstrapDeps['files'],
  path: string,
  stored: KeyPair | undefined,
): Promise<KeyObject> {
  const text = stored?.keyPem ?? (await files.read(path));
  const privateKey = text === undefined ? undefined : readPrivateKey(text);
  if (privateKey !== undefined) return privateKey;
  const key = newEcKey();
  await files.replace(path, keyPem(key), 0o600);
  return key;
}

interface NamedRequest {
  readonly api: CsrApi;
  readonly key: KeyObject;
  readonly nodeName: string;
  readonly nowMs: number;
}

/** Creates the signing request for this key, or finds the one of an earlier attempt. */
async function ensureRequest(
  { api, key, nodeName, nowMs }: NamedRequest,
  signal: AbortSignal,
): Promise<{ readonly ref: CsrRef } | { readonly unusable: string }> {
  const identity = clientIdentity(nodeName);
  const usages = [
    'digital signature',
    'client auth',
    ...(key.asymmetricKeyType === 'rsa' ? ['key encipherment'] : []),
  ];
  const name = bootstrapCsrName(key, identity, usages);
  const requestPem = createCertificateRequest(identity, key);
  try {
    return {
      ref: await createSigningRequest(api, { name, requestPem, signerName: signers.client, usages }, signal),
    };
  } catch (error) {
    if (!isApiCode(error, 'API_CONFLICT')) throw error;
    const { ref, object } = await getSigningRequest(api, name, signal);
    const unusable = whyUnusable(object, { key, identity: identityKey(identity), nowMs });
    return unusable === undefined
      ? { ref }
      : { unusable: `the certificate signing request ${name} ${unusable}` };
  }
}

interface Expected {
  readonly key: KeyObject;
  readonly identity: string;
  readonly nowMs: number;
}

function whyUnusable({ spec, status }: CsrObject, { key, identity, nowMs }: Expected): string | undefined {
  try {
    const request = readCertificateRequest(Buffer.from(spec?.request ?? '', 'base64').toString('utf8'));
    if (identityKey(request.identity) !== identity) return 'is for another node';
    if (!publicKeyDer(request.publicKey).equals(publicKeyDer(key))) return 'is for another key';
    const { signerName } = spec ?? {};
    if (signerName !== undefined && signerName !== signers.client) return `is for the signer ${signerName}`;
    const issued = Buffer.from(status?.certificate ?? '', 'base64').toString('utf8');
    const expired = readLeaves(issued, 'it').find((leaf) => isExpired(leaf, nowMs));
    return expired && `was issued a certificate that expired ${apiTime(expired.notAfterMs)}`;
  } catch (error) {
    return `cannot be parsed: ${describeError(error)}`;
  }
}

/**
 * Derives the name of the request, which is the same for the same key, subject and usages. Each
 * part ends with a separator that no part contains, so that different lists never produce the same
 * text.
 */
export function bootstrapCsrName(
  key: KeyObject,
  { commonName, organizations }: Subject,
  usages: readonly string[],
): string {
  const hash = createHash('sha512-256');
  const parts = [
    publicKeyDer(key),
    ...[commonName, ...organizations, ...usages].map((text) => Buffer.from(text)),
  ];
  for (const part of parts) hash.update(`${part.toString('base64url')}|`);
  return `node-csr-${hash.digest('base64url')}`;
}
