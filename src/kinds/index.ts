export * from './gen/kinds.ts';
