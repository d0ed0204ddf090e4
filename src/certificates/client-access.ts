import { apiTime, type Clock, describeError, KubelingError, type Logger } from '../lib/index.ts';
import { isExpired, type KeyPair, lackingOf, readLeaves } from '../protocols/x509/index.ts';
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
  /** Empty for none. */
  readonly bootstrapPath: string;
  readonly certDirectory: string;
}

/** By which kubeconfig certificates are asked for while there is none; requests of the node itself use the other. */
export interface ClientAccess {
  readonly askBy: 'kubeconfig' | 'bootstrap';
  readonly askPath: string;
  readonly kubeconfigPath: string;
}

/**
 * Makes sure, before anything is asked of the API server, that there is a kubeconfig (`rotateCertificates`). A kubeconfig
 * without a valid certificate is written anew from the bootstrap kubeconfig, at once: the certificate it names comes
 * later. Throws CERTIFICATE_BOOTSTRAP when there is no way to get one.
 */
export async function prepareClientAccess(
  settings: ClientAccessSettings,
  deps: ClientAccessDeps,
): Promise<ClientAccess> {
  const { kubeconfigPath, bootstrapPath } = settings;
  const verdict = await judgeKubeconfig(settings, deps);
  if (verdict.use === 'it') return { askBy: 'kubeconfig', askPath: kubeconfigPath, kubeconfigPath };
  const bootstrap = await readBootstrap(settings, verdict.why, deps);
  await writeNodeKubeconfig(settings, bootstrap, deps);
  deps.log.info('Wrote the kubeconfig; its certificate is asked for by the bootstrap kubeconfig', {
    kubeconfig: kubeconfigPath,
    bootstrapKubeconfig: bootstrapPath,
    why: verdict.why,
  });
  return { askBy: 'bootstrap', askPath: bootstrapPath, kubeconfigPath };
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

export type KubeconfigVerdict = { readonly use: 'it' } | { readonly use: 'bootstrap'; readonly why: string };

/**
 * Whether the kubeconfig will do. Without a bootstrap kubeconfig it must: one whose certificate has expired does too, as
 * static pods, the API server itself among them, must run all the same.
 */
export async function judgeKubeconfig(
  settings: ClientAccessSettings,
  deps: ClientAccessDeps,
): Promise<KubeconfigVerdict> {
  const { kubeconfigPath, bootstrapPath } = settings;
  try {
    const text = await deps.files.read(kubeconfigPath);
    if (text === undefined)
      throw new KubelingError('CERTIFICATE_BOOTSTRAP', `There is no kubeconfig ${kubeconfigPath}`);
    const context = await deps.parseKubeconfig({ file: kubeconfigPath, text });
    const wrong = await certificateProblem(context, settings, deps);
    if (wrong === undefined) return { use: 'it' };
    if (bootstrapPath !== '') return { use: 'bootstrap', why: wrong };
    deps.log.warn(
      `Requests to the API server may be refused: ${wrong}. Renew it, or give a --bootstrap-kubeconfig`,
    );
    return { use: 'it' };
  } catch (error) {
    const why = describeError(error);
    if (bootstrapPath !== '') return { use: 'bootstrap', why };
    throw new KubelingError(
      'CERTIFICATE_BOOTSTRAP',
      `Cannot become a node as there must be a kubeconfig or a bootstrap kubeconfig: ${why}. Correct it, or give a --bootstrap-kubeconfig`,
      { cause: error },
    );
  }
}

/** A token, a token file or a plugin make a certificate needless; a valid one in the store makes up for an old one. */
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
  const wrong = await timeProblem(files, certificate.cert, clock.now());
  if (wrong === undefined) return undefined;
  return (await validInStore(certDirectory, deps)) === undefined ? wrong : undefined;
}

/**
 * What stands in for the certificate of a kubeconfig that has expired or is gone: the one an earlier run, which rotated
 * it, left in the store. Undefined where the kubeconfig's own holds, or nothing else is there.
 */
export async function standInCertificate(
  { user }: KubeconfigView,
  { certDirectory, nodeName }: { readonly certDirectory: string; readonly nodeName: string },
  deps: Omit<ClientAccessDeps, 'parseKubeconfig'>,
): Promise<KeyPair | undefined> {
  const { certificate } = user;
  if (certificate === undefined) return undefined;
  const wrong = await timeProblem(deps.files, certificate.cert, deps.clock.now());
  const stored = wrong === undefined ? undefined : await validInStore(certDirectory, deps);
  if (stored === undefined || lackingOf(stored.leaf, clientIdentity(nodeName)).length > 0) return undefined;
  deps.log.warn(`The client certificate in ${stored.from} is used instead, as ${wrong}`);
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
  if (text === undefined) return `the client certificate ${material.name} is not there`;
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
    if (text === undefined) throw new KubelingError('FILE_NOT_FOUND', `${bootstrapPath} is not there`);
    return await parseKubeconfig({ file: bootstrapPath, text });
  } catch (error) {
    throw new KubelingError(
      'CERTIFICATE_BOOTSTRAP',
      `Cannot become a node as the bootstrap kubeconfig must be usable: ${describeError(error)}. It is needed because ${why}`,
      { cause: error },
    );
  }
}
