import { resolve } from 'node:path';
import type { Section } from './fields.ts';
import type { ExecPlugin, KubeUser } from './kubeconfig.ts';
import { type KubeconfigPlace, readMaterial } from './material.ts';

const anonymous: KubeUser = {
  certificate: undefined,
  token: undefined,
  tokenFile: undefined,
  basic: undefined,
  exec: undefined,
};

/** What a node must not silently go without: to leave it out would make us somebody else. */
const unsupported = ['auth-provider', 'as', 'as-uid', 'as-groups', 'as-user-extra'];

export function readUser(section: Section | undefined, place: KubeconfigPlace): KubeUser {
  if (section === undefined) return anonymous;
  for (const name of unsupported) {
    if (section.has(name))
      section.refuse(name, 'is not supported: use a certificate, a token or an exec plugin');
  }
  const tokenFile = section.text('tokenFile');
  const token = readToken(section);
  const basic = readBasic(section);
  if (basic !== undefined && (token !== undefined || tokenFile !== undefined)) {
    section.refuse('username', 'must not be there beside a token');
  }
  return {
    certificate: readCertificate(section, place),
    token,
    tokenFile: tokenFile === undefined ? undefined : resolve(place.directory, tokenFile),
    basic,
    exec: readExec(section.section('exec'), place),
  };
}

/** A header takes no control characters, and Node.js would refuse each request with it. */
function readToken(section: Section): string | undefined {
  const token = section.text('token')?.trim();
  return token === undefined || isHeaderText(token)
    ? token
    : section.refuse('token', 'must be printable characters without spaces');
}

export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function readBasic(section: Section): KubeUser['basic'] {
  const [username, password] = [section.text('username'), section.text('password')];
  if (username === undefined && password === undefined) return undefined;
  if (username === undefined) return section.refuse('username', 'must be there beside a password');
  return { username, password: password ?? '' };
}

function readCertificate(section: Section, place: KubeconfigPlace): KubeUser['certificate'] {
  const cert = readMaterial(section, 'client-certificate', place);
  const key = readMaterial(section, 'client-key', place);
  if (cert !== undefined && key !== undefined) return { cert, key };
  const written = (name: string) => section.has(name) || section.has(`${name}-data`);
  const [hasCert, hasKey] = [written('client-certificate'), written('client-key')];
  if (hasCert && !hasKey) return section.refuse('client-key', 'must be there beside a client certificate');
  if (hasKey && !hasCert) return section.refuse('client-certificate', 'must be there beside a client key');
  return undefined;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
const interactiveModes = ['Never', 'IfAvailable', 'Always'];

function readExec(section: Section | undefined, place: KubeconfigPlace): ExecPlugin | undefined {
  if (section === undefined) return undefined;
  const written = section.text('apiVersion');
  const apiVersion = execVersions.find((version) => version === written);
  if (apiVersion === undefined) {
    section.refuse(
      'apiVersion',
      `must be one of ${execVersions.join(', ')}: current value is "${written ?? ''}"`,
    );
  }
  const command = section.text('command') ?? section.refuse('command', 'must be a program');
  checkInteractive(section, apiVersion);
  const env = readEnv(section);
  const args = section.texts('args');
  if (apiVersion === undefined || command === undefined) return undefined;
  return {
    apiVersion,
    command: command.includes('/') ? resolve(place.directory, command) : command,
    args,
    env,
    installHint: section.text('installHint'),
    clusterInfo: section.flag('provideClusterInfo') ? 'provided' : 'withheld',
  };
}

/** A node has nobody to ask: a plugin that needs somebody cannot work. */
function checkInteractive(section: Section, apiVersion: ExecPlugin['apiVersion'] | undefined): void {
  const mode = section.text('interactiveMode');
  if (mode === 'Always') section.refuse('interactiveMode', 'must not be Always: a node has no terminal');
  else if (mode === undefined && apiVersion === 'client.authentication.k8s.io/v1') {
    section.refuse('interactiveMode', `must be one of ${interactiveModes.join(', ')}`);
  } else if (mode !== undefined && !interactiveModes.includes(mode)) {
    const known = interactiveModes.join(', ');
    section.refuse('interactiveMode', `must be one of ${known}: current value is "${mode}"`);
  }
}

function readEnv(section: Section): Readonly<Record<string, string>> {
  const pairs = section.sections('env').map((each) => {
    const name = each.text('name') ?? each.refuse('name', 'must be the name of a variable');
    return [name ?? '', each.text('value') ?? ''] as const;
  });
  return Object.fromEntries(pairs);
}
