import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';

const module = new URL('./inherited-descriptors.ts', import.meta.url).href;

/**
 * Starts a process with two additional descriptors. Returns which of the two are still open in the
 * process, and which of them are inherited by a program that the process starts.
 */
function sealed(
  fcntl: 'called' | 'missing',
  ...words: readonly string[]
): Record<'own' | 'passedOn', string[]> {
  const script = `
    import { spawnSync } from 'node:child_process';
    import { existsSync } from 'node:fs';
    import { sealInheritedDescriptors } from '${module}';
    sealInheritedDescriptors(process.argv${fcntl === 'called' ? '' : ', () => undefined'});
    const own = ['40', '41'].filter((fd) => existsSync('/proc/self/fd/' + fd));
    const passedOn = spawnSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout.split('\\n');
    console.log(JSON.stringify({ own, passedOn: passedOn.filter((fd) => Number(fd) > 3) }));`;
  const node = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '--eval',
    script,
    '--',
    ...words,
  ];
  const shell = ['-c', 'exec 40</etc/hosts 41</etc/hosts; exec "$@"', 'bash', ...node];
  return JSON.parse(execFileSync('bash', shell, { encoding: 'utf8' }));
}

describe('sealInheritedDescriptors', () => {
  it('hides inherited descriptors from started programs and keeps them open in this process', () => {
    assert.deepEqual(sealed('called'), { own: ['40', '41'], passedOn: [] });
  });

  it('closes inherited descriptors if the C library cannot be called, except a descriptor that an argument names', () => {
    const { own, passedOn } = sealed('missing', '--config', '/dev/fd/41');
    assert.deepEqual(own, ['41']);
    assert.ok(!passedOn.includes('40'));
  });
});
