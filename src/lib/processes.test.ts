import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { descendants, type ProcessInfo, ProcessTable, parseStat } from './processes.ts';

function info(pid: number, parent: number): ProcessInfo {
  return { pid, parent, argv: [], startTime: pid, bootId: 'boot' };
}

describe('parseStat', () => {
  it('parses a stat file although the program name contains brackets and spaces', () => {
    const text = `42 (a) R 7 (b) S 1 42 42 0 -1 4194560 ${'0 '.repeat(12)}987654 1 2`;
    assert.deepEqual(parseStat(text), { state: 'S', parent: 1, startTime: 987654 });
  });
});

describe('descendants', () => {
  it('returns direct and indirect children, without the roots and unrelated processes', () => {
    const all = [info(1, 0), info(2, 1), info(3, 2), info(4, 3), info(5, 1), info(6, 4)];
    const roots = all.filter((process) => process.pid === 2);
    assert.deepEqual(
      descendants(all, roots).map((process) => process.pid),
      [3, 4, 6],
    );
  });
});

describe('ProcessTable', () => {
  it('reads at most 16 KiB of a command line', async () => {
    const long = 'x'.repeat(100_000);
    const program = 'process.stdin.resume()';
    const child = spawn(process.execPath, ['-e', program, 'short', long, 'last']);
    try {
      await once(child, 'spawn');
      const found = await new ProcessTable().find(child.pid ?? 0);
      assert.deepEqual(found?.argv, [process.execPath, '-e', program, 'short']);
    } finally {
      child.kill();
    }
  });
});
