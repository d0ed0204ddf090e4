import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExposition } from './exposition.ts';

test('parses a metrics page with its labels, values and timestamps', () => {
  const page =
    '# HELP a_total one\\ntwo\n# TYPE a_total counter\na_total{x="1\\"\\\\\\n",y=""} 1.5e+06 17\na_total 2\n';
  assert.deepEqual(parseExposition(page), [
    { name: 'a_total', labels: { x: '1"\\\n', y: '' }, value: 1.5e6, timestampMs: 17 },
    { name: 'a_total', labels: {}, value: 2, timestampMs: undefined },
  ]);
  const histogram = '# TYPE h histogram\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n';
  assert.equal(parseExposition(histogram).length, 3);
});

for (const [why, page] of Object.entries({
  'a line that does not end': '# TYPE a gauge\na 1',
  'a sample of another family': '# TYPE a gauge\nb 1\n',
  'a family in two places': '# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na{x="1"} 1\n',
  'a sample twice': '# TYPE a gauge\na{x="1",y="2"} 1\na{y="2",x="1"} 2\n',
  'no number': '# TYPE a gauge\na one\n',
  'a label without its end': '# TYPE a gauge\na{x="1} 1\n',
  'a type nobody knows': '# TYPE a meter\na 1\n',
  'a name that is none': '# TYPE 1a gauge\n1a 1\n',
}))
  test(`rejects a metrics page with ${why}`, () => void assert.throws(() => parseExposition(page)));
