import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { setupKernelTunables } from './kernel-tunables.ts';

const asWanted = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

function aKernel(texts: Readonly<Record<string, string>>, readOnly: readonly string[] = []) {
  const held = new Map(Object.entries(texts).map(([name, text]) => [`/proc/sys/${name}`, `${text}\n`]));
  const written: string[] = [];
  const files = {
    read: async (path: string) => held.get(path) ?? Promise.reject(new Error(`ENOENT: ${path}`)),
    write: async (path: string, text: string) => {
      if (readOnly.some((name) => path.endsWith(name))) throw new Error(`EROFS: ${path}`);
      written.push(`${path}=${text}`);
    },
  };
  const { logger, records } = collectLogs(new VirtualClock());
  return { files, written, logger, records };
}

describe('kernel tunables', () => {
  it('sets the kernel tunables that differ', async () => {
    const kernel = aKernel({ ...asWanted, 'vm/overcommit_memory': '0', 'kernel/panic': '1' });
    await setupKernelTunables({ ...kernel, mismatch: 'set' });
    assert.deepEqual(kernel.written, ['/proc/sys/vm/overcommit_memory=1', '/proc/sys/kernel/panic=10']);
  });

  it('only checks the kernel tunables with protectKernelDefaults, and names all that differ', async () => {
    const kernel = aKernel({ ...asWanted, 'vm/overcommit_memory': '0', 'kernel/panic_on_oops': '0' });
    await assert.rejects(setupKernelTunables({ ...kernel, mismatch: 'refuse' }), {
      code: 'MACHINE_UNFIT',
      message: /vm\.overcommit_memory must be 1: current value is 0; kernel\.panic_on_oops must be 1/,
    });
    assert.deepEqual(kernel.written, []);
    const fit = aKernel(asWanted);
    await setupKernelTunables({ ...fit, mismatch: 'refuse' });
  });

  it('starts although kernel tunables cannot be read or set', async () => {
    const { 'kernel/keys/root_maxkeys': _, ...rest } = asWanted;
    const kernel = aKernel({ ...rest, 'kernel/panic': '1', 'vm/panic_on_oom': '1' }, ['kernel/panic']);
    await setupKernelTunables({ ...kernel, mismatch: 'set' });
    assert.deepEqual(kernel.written, ['/proc/sys/vm/panic_on_oom=0']);
    assert.deepEqual(
      [...kernel.records].filter(({ severity }) => severity === 'warning').map(({ message }) => message),
      ['Failed to set kernel tunable', 'Failed to read kernel tunable'],
    );
  });
});
