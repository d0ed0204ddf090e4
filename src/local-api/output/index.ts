export {
  createDocumentRoutes,
  createDocumentServer,
  createVersionInfo,
  type Document,
  type DocumentOptions,
  type DocumentRoutes,
  type VersionInfo,
  type VersionSources,
} from './public-routes.ts';
export { ageOf, shortDuration } from './tables/column.ts';
export { asPartial, asTable, type TableOptions } from './tables/table.ts';
