import { yamlToJs } from '../../lib/index.ts';
import type { Section } from './fields.ts';
import type { KubeCluster } from './kubeconfig.ts';
import { type KubeconfigPlace, readMaterial } from './material.ts';

/** The name of the extension with what exec plugins are told about a cluster. */
const execExtension = 'client.authentication.k8s.io/exec';

export function readCluster(section: Section, place: KubeconfigPlace): KubeCluster | undefined {
  const server = section.has('server')
    ? readUrl(section, 'server')
    : section.refuse('server', 'must be the URL of the API server');
  const ca = readMaterial(section, 'certificate-authority', place);
  const verification = section.flag('insecure-skip-tls-verify') ? 'skipped' : 'full';
  if (ca !== undefined && verification === 'skipped') {
    section.refuse('insecure-skip-tls-verify', 'must not be true beside a certificate authority');
  }
  const tlsServerName = section.text('tls-server-name');
  const proxyUrl = readUrl(section, 'proxy-url');
  const execConfig = readExecConfig(section);
  return server && { server, ca, tlsServerName, verification, proxyUrl, execConfig };
}

function readUrl(section: Section, name: string): URL | undefined {
  const text = section.text(name);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '') return url;
  // What it holds may include a password.
  const shown = text.replace(/\/\/[^/@]*@/, '//***@');
  return section.refuse(name, `must be a URL with http:// or https://: current value is "${shown}"`);
}

function readExecConfig(section: Section): unknown {
  const entry = section.sections('extensions').find((each) => each.text('name') === execExtension);
  const tree = entry?.tree('extension');
  return tree === undefined ? undefined : yamlToJs(tree);
}
