import type { AuthorityFiles } from './files.ts';

/** Who somebody is to the server: a certificate in the kubeconfig itself, or in a file that is read again. */
export type KubeconfigUser =
  | { readonly kind: 'inline'; readonly certificatePem: string; readonly keyPem: string }
  | { readonly kind: 'file'; readonly path: string };

export interface KubeconfigContents {
  /** Such as `https://127.0.0.1:7443`. */
  readonly server: string;
  readonly authorityPem: string;
  readonly user: KubeconfigUser;
  /** Of cluster and context; `kubeling` unless given. */
  readonly name?: string | undefined;
  readonly userName: string;
}

/** A kubeconfig with one context, which is the current one. */
export function kubeconfigText(contents: KubeconfigContents): string {
  const { server, authorityPem, user, name = 'kubeling', userName } = contents;
  const base64 = (pem: string) => Buffer.from(pem).toString('base64');
  const credentials =
    user.kind === 'inline'
      ? {
          'client-certificate-data': base64(user.certificatePem),
          'client-key-data': base64(user.keyPem),
        }
      : { 'client-certificate': user.path, 'client-key': user.path };
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- name: ${JSON.stringify(name)}`,
    '  cluster:',
    ...fields({ server, 'certificate-authority-data': base64(authorityPem) }),
    'users:',
    `- name: ${JSON.stringify(userName)}`,
    '  user:',
    ...fields(credentials),
    'contexts:',
    `- name: ${JSON.stringify(name)}`,
    '  context:',
    ...fields({ cluster: name, user: userName, namespace: 'default' }),
    `current-context: ${JSON.stringify(name)}`,
    '',
  ].join('\n');
}

function fields(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).map(([name, value]) => `    ${name}: ${JSON.stringify(value)}`);
}

/** For its owner only; whoever reads it meanwhile sees the old one or the new. */
export async function writeKubeconfig(
  files: Pick<AuthorityFiles, 'replace'>,
  path: string,
  contents: KubeconfigContents,
): Promise<void> {
  await files.replace(path, kubeconfigText(contents), 0o600);
}
