import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryFiles } from './file-system.ts';
import { loadConfig } from './load.ts';
import { renderConfig } from './render.ts';

const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const file = `${header}maxPods: 250
clusterDNS:
- 10.96.0.10
registerWithTaints:
- key: a
  effect: NoSchedule
evictionHard:
  memory.available: 5%
staticPodURLHeader: {Authorization: [Bearer hunter2]}
nodeStatusUpdateFrequency: 4s
`;

async function render(...argv: string[]): Promise<readonly string[]> {
  const texts = { '/etc/k.yaml': file, '/etc/d/a.conf': `${header}syncFrequency: 90s\n` };
  const loaded = await loadConfig(['--config=/etc/k.yaml', ...argv], { files: memoryFiles(texts), cwd: '/' });
  return renderConfig(loaded).split('\n');
}

test('every value is followed by where it came from', async () => {
  const lines = await render('--config-dir=/etc/d', '--port=1234', '--feature-gates=MemoryQoS=true');
  for (const line of [
    'maxPods: 250  # /etc/k.yaml:3',
    'syncFrequency: 1m30s  # /etc/d/a.conf:3',
    'port: 1234  # --port',
    'healthzPort: 10248  # default',
    '- "10.96.0.10"  # /etc/k.yaml:5',
    '- key: a  # /etc/k.yaml:7',
    '  effect: NoSchedule  # /etc/k.yaml:8',
    '  memory.available: "5%"  # /etc/k.yaml:10',
    'nodeStatusReportFrequency: 4s  # default, as nodeStatusUpdateFrequency is set',
    '  MemoryQoS: true  # --feature-gates',
    '    clientCAFile: ""  # default',
    'tlsCipherSuites: []  # default',
    'qosReserved: {}  # default',
  ]) {
    assert.ok(lines.includes(line), line);
  }
});

test('secrets are masked', async () => {
  const lines = await render();
  assert.ok(lines.includes('  - "<masked>"  # /etc/k.yaml:11'));
  assert.doesNotMatch(lines.join('\n'), /hunter2/);
});

test('what is printed can be used as a file again', async () => {
  const printed = (await render('--max-pods=7')).join('\n').replace('"<masked>"', 'x');
  const { config } = await loadConfig(['--config=/p.yaml'], {
    files: memoryFiles({ '/p.yaml': printed }),
    cwd: '/',
  });
  assert.equal(config.maxPods, 7);
  assert.deepEqual(config.evictionHard, { 'memory.available': '5%' });
  assert.equal(config.nodeStatusReportFrequencyMs, 4000);
});
