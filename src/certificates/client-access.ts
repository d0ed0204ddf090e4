import { apiTime, type Clock, describeError, KubelingError, type Logger } from '../lib/index.ts';
import { isExpired, type KeyPair, missingFrom, readLeaves } from '../protocols/x509/index.ts';
import { CertificateStore } from './certificate-store.ts';
import { clientPrefix } from './client-certificate.ts';
import type { CertificateFiles } from './files.ts';
import { type KubeconfigView, materialText, nodeKubeconfig, type ParseKubeconfig } from './kubeconfig.ts';
import { clientIdentity } from './node-identity.ts';

export interface ClientAccessDeps {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly parseKubeconfig: ParseKubeconfig;
}

export interface ClientAccessSettings {
  readonly kubeconfigPath: string;
  /** The path of the bootstrap kubeconfig; empty if none is configured. */
  readonly bootstrapPath: string;
  readonly certDirectory: string;
}

/**
 * How to request certificates: the kubeconfig to use while the node has no certificate. All other
 * requests use the node's kubeconfig.
 */
export interface CertificateAccess {
  readonly requestBy: 'kubeconfig' | 'bootstrap';
  readonly requestPath: string;
  readonly kubeconfigPath: string;
}

/**
 * Ensures that a kubeconfig exists before any other request (`rotateCertificates`). A kubeconfig
 * without a valid certificate is rewritten immediately from the bootstrap kubeconfig; the
 * certificate is requested later. Throws CERTIFICATE_BOOTSTRAP if no certificate can be obtained.
 */
export async function prepareClientAccess(
  settings: ClientAccessSettings,
  deps: ClientAccessDeps,
): Promise<CertificateAccess> {
  const { kubeconfigPath, bootstrapPath } = settings;
  const choice = await chooseKubeconfig(settings, deps);
  if (choice.use === 'it') return { requestBy: 'kubeconfig', requestPath: kubeconfigPath, kubeconfigPath };
  const bootstrap = await readBootstrap(settings, choice.why, deps);
  await writeNodeKubeconfig(settings, bootstrap, deps);
  deps.log.info('Wrote kubeconfig, requesting its certificate with the bootstrap kubeconfig', {
    kubeconfig: kubeconfigPath,
    bootstrapKubeconfig: bootstrapPath,
    why: choice.why,
  });
  return { requestBy: 'bootstrap', requestPath: bootstrapPath, kubeconfigPath };
}

export async function writeNodeKubeconfig(
  { kubeconfigPath, certDirectory }: ClientAccessSettings,
  bootstrap: KubeconfigView,
  { files, clock, log }: ClientAccessDeps,
): Promise<void> {
  const store = await CertificateStore.open({
    files,
    clock,
    log,
    directory: certDirectory,
    prefix: clientPrefix,
  });
  await files.replace(kubeconfigPath, nodeKubeconfig(bootstrap, store.currentPath), 0o600);
}

export type KubeconfigChoice = { readonly use: 'it' } | { readonly use: 'bootstrap'; readonly why: string };

/**
 * Decides whether the kubeconfig is usable or must be bootstrapped. Without a bootstrap kubeconfig
 * an expired certificate is accepted, because static pods, including the API server itself, must
 * run.
 */
export async function chooseKubeconfig(
  settings: ClientAccessSettings,
  deps: ClientAccessDeps,
): Promise<KubeconfigChoice> {
  const { kubeconfigPath, bootstrapPath } = settings;
  try {
    const text = await deps.files.read(kubeconfigPath);
    if (text === undefined)
      throw new KubelingError('CERTIFICATE_BOOTSTRAP', `There is no kubeconfig ${kubeconfigPath}`);
    const context = await deps.parseKubeconfig({ file: kubeconfigPath, text });
    const problem = await certificateProblem(context, settings, deps);
    if (problem === undefined) return { use: 'it' };
    if (bootstrapPath !== '') return { use: 'bootstrap', why: problem };
    deps.log.warn(`API server may reject requests: ${problem}. Renew it, or set --bootstrap-kubeconfig`);
    return { use: 'it' };
  } catch (error) {
    const why = describeError(error);
    if (bootstrapPath !== '') return { use: 'bootstrap', why };
    throw new KubelingError(
      'CERTIFICATE_BOOTSTRAP',
      `Cannot join the cluster as there must be a kubeconfig or a bootstrap kubeconfig: ${why}. Correct it, or set --bootstrap-kubeconfig`,
      { cause: error },
    );
  }
}

/**
 * Returns why the client certificate is unusable; undefined if it is usable. A token, token file or
 * exec plugin makes a certificate unnecessary, and a valid certificate in the store replaces an
 * expired one.
 */
async function certificateProblem(
  { user }: KubeconfigView,
  { certDirectory, kubeconfigPath }: ClientAccessSettings,
  deps: ClientAccessDeps,
): Promise<string | undefined> {
  const { files, clock } = deps;
  const { certificate, token, tokenFile, exec } = user;
  if (certificate === undefined) {
    const hasOther = [token, tokenFile, exec].some((means) => means !== undefined);
    return hasOther ? undefined : `the kubeconfig ${kubeconfigPath} has neither a certificate nor a token`;
  }
  const problem = await timeProblem(files, certificate.cert, clock.now());
  if (problem === undefined) return undefined;
  return (await validInStore(certDirectory, deps)) === undefined ? problem : undefined;
}

/**
 * Returns the certificate that an earlier kubelet process with rotation has stored, if the
 * certificate of the kubeconfig is expired or missing; undefined if the kubeconfig has a valid one
 * or none is stored.
 */
export async function storedCertificate(
  { user }: KubeconfigView,
  { certDirectory, nodeName }: { readonly certDirectory: string; readonly nodeName: string },
  deps: Omit<ClientAccessDeps, 'parseKubeconfig'>,
): Promise<KeyPair | undefined> {
  const { certificate } = user;
  if (certificate === undefined) return undefined;
  const problem = await timeProblem(deps.files, certificate.cert, deps.clock.now());
  const stored = problem === undefined ? undefined : await validInStore(certDirectory, deps);
  if (stored === undefined || missingFrom(stored.leaf, clientIdentity(nodeName)).length > 0) return undefined;
  deps.log.warn(`Using client certificate in ${stored.from} as ${problem}`);
  return stored;
}

async function validInStore(
  directory: string,
  { files, clock, log }: Omit<ClientAccessDeps, 'parseKubeconfig'>,
): Promise<KeyPair | undefined> {
  const store = await CertificateStore.open({ files, clock, log, directory, prefix: clientPrefix });
  const stored = await store.load();
  return stored === undefined || isExpired(stored.leaf, clock.now()) ? undefined : stored;
}

async function timeProblem(
  files: CertificateFiles,
  material: Parameters<typeof materialText>[1],
  nowMs: number,
): Promise<string | undefined> {
  const text = await materialText(files, material);
  if (text === undefined) return `the client certificate ${material.name} does not exist`;
  const leaves = readLeaves(text, material.name);
  if (leaves.length === 0) return `there is no certificate in ${material.name}`;
  const expired = leaves.find((leaf) => isExpired(leaf, nowMs));
  return expired && `the client certificate in ${material.name} expired ${apiTime(expired.notAfterMs)}`;
}

export async function readBootstrap(
  { bootstrapPath }: ClientAccessSettings,
  why: string,
  { files, parseKubeconfig }: ClientAccessDeps,
): Promise<KubeconfigView> {
  try {
    const text = await files.read(bootstrapPath);
    if (text === undefined) throw new KubelingError('FILE_NOT_FOUND', `${bootstrapPath} does not exist`);
    return await parseKubeconfig({ file: bootstrapPath, text });
  } catch (error) {
    throw new KubelingError(
      'CERTIFICATE_BOOTSTRAP',
      `Cannot join the cluster as the bootstrap kubeconfig must be usable: ${describeError(error)}. It is needed because ${why}`,
      { cause: error },
    );
  }
}
