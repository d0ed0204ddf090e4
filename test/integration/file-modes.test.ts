import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { protectedFiles, reportLooseModes } from '../../src/cli/run/run.ts';
import { hostFiles, loadConfig } from '../../src/config/index.ts';
import { collectLogs } from '../../src/lib/index.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

test('warns at startup about files of the node that other users can access', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kubeling-modes-'));
  try {
    const write = (name: string, text: string, mode: number) => {
      const path = join(folder, name);
      writeFileSync(path, text);
      chmodSync(path, mode);
      return path;
    };
    const config = write(
      'config.yaml',
      'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n',
      0o644,
    );
    const kubeconfig = write('kubelet.conf', '', 0o600);
    const ca = write('ca.crt', '', 0o664);
    const argv = [`--config=${config}`, `--kubeconfig=${kubeconfig}`, `--client-ca-file=${ca}`];
    const loaded = await loadConfig(argv, { files: hostFiles(), cwd: '/' });
    const { logger, records } = collectLogs(new VirtualClock());
    const files = [...protectedFiles(loaded), { path: join(folder, 'gone'), mode: 0o600 } as const];
    await reportLooseModes(files, logger);
    assert.deepEqual(
      [...records].map(({ fields }) => [fields?.['path'], fields?.['mode'], fields?.['must']]),
      [
        [config, '0644', '0600'],
        [ca, '0664', '0644'],
      ],
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
