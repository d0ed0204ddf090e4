import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { hostsFile } from './hosts-file.ts';

const host = { host: 'web', domain: '' };
const head = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`;

test('a pod with an address of its own', () => {
  const text = hostsFile(aPod(), { hostname: host, podIps: ['10.0.0.7', 'fd00::7'], nodeHosts: '' });
  assert.equal(text, `${head}10.0.0.7\tweb\nfd00::7\tweb\n`);
});

test('a pod with a domain has its full name first', () => {
  const hostname = { host: 'web', domain: 'db.default.svc.cluster.local' };
  const text = hostsFile(aPod(), { hostname, podIps: ['10.0.0.7'], nodeHosts: '' });
  assert.equal(text, `${head}10.0.0.7\tweb.db.default.svc.cluster.local\tweb\n`);
});

test('aliases follow after a blank line', () => {
  const spec = {
    hostAliases: [
      { ip: '1.2.3.4', hostnames: ['a', 'b.example'] },
      { ip: '5.6.7.8', hostnames: ['c'] },
    ],
  };
  const text = hostsFile(aPod({ spec }), { hostname: host, podIps: ['10.0.0.7'], nodeHosts: '' });
  assert.equal(
    text,
    `${head}10.0.0.7\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.example\n5.6.7.8\tc\n`,
  );
});

test('on the host network it is the node’s own, with aliases', () => {
  const spec = { hostNetwork: true, hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }] };
  const text = hostsFile(aPod({ spec }), { hostname: host, podIps: [], nodeHosts: '127.0.0.1 localhost\n' });
  assert.equal(
    text,
    '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n# Entries added by HostAliases.\n1.2.3.4\ta\n',
  );
});
